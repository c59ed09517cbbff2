/* journal.h: the journal, the file beside a trace that holds the records until the trace is complete. The
 * file is mapped shared, so the records survive the process, however it ends. The journal reserves space on
 * the disk before a thread stores to it, so a full disk is an error here, never a signal later.
 *
 *   head, chunks  [0, bytes)    prepared for the next chunks  [bytes, ready): zeroes
 *
 * The caller holds the recorder's lock, unless a function's comment states otherwise. The journal is opened
 * and closed while nothing is recorded. */
#ifndef KPTI_EXECUTION_TRACE_JOURNAL_JOURNAL_H
#define KPTI_EXECUTION_TRACE_JOURNAL_JOURNAL_H

#include <limits.h>
#include <stddef.h>

#include "core/base/assert.h"
#include "core/base/file_id.h"
#include "execution_trace/journal/journal_format.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A mapped part of the file. Its end may be behind the end of the file; that part is not touched. A later
 * mapping may begin before this one ends. */
typedef struct kpti_et_mapping {
    struct kpti_et_mapping *before;
    char *bytes;
    uint64_t begin; /* in the file */
    uint64_t size;
} kpti_et_mapping;

/* A part of the file for which space is to be reserved. */
typedef struct kpti_et_extent {
    int fd;
    kpti_file_id id;
    char *bytes;
    uint64_t begin;
    uint64_t size; /* 0 if there is nothing to do */
} kpti_et_extent;

typedef struct kpti_et_journal {
    int fd;          /* the program may close it (file_descriptor.h) */
    kpti_file_id id; /* the mappings hold it */
    int is_lost; /* a chunk was refused, since the program had closed fd and the file can't be opened again */
    uint64_t bytes; /* allocated to chunks so far; 0 if no journal is open */
    uint64_t ready;
    kpti_et_head *head;
    kpti_et_mapping *last;
    int low_address_space; /* address space is short: each chunk has its own mapping */
    char path[PATH_MAX];
} kpti_et_journal;

static inline int kpti_et_journal_is_valid(const kpti_et_journal *j)
{
    return j->bytes <= j->ready && j->bytes % KPTI_ET_ALIGN == 0 && !j->head == !j->bytes &&
           (!j->bytes || (j->last && j->bytes <= j->last->begin + j->last->size));
}

/* Creates PATH and replaces an existing file. If PATH is NULL, creates a file without a name. Returns 0 or
 * an errno. */
int kpti_et_journal_open(kpti_et_journal *journal, const char *path);
/* Closes the journal, and keeps the file if WANTED is set. Returns the mappings that are still mapped. The
 * caller owns them and unmaps them later, since unmapping takes a millisecond for a few thousand pages. */
kpti_et_mapping *kpti_et_journal_close(kpti_et_journal *journal, int wanted);
/* Unmaps WINDOW and all mappings before it. Any thread may call it, without the lock. */
void kpti_et_mappings_unmap(kpti_et_mapping *mapping);
/* Called in the child of a fork. The child does not inherit the mappings, and the file belongs to the
 * parent. */
void kpti_et_journal_forked(kpti_et_journal *journal);
/* Returns a new chunk of at least WORDS words, or NULL if there is no space; *ERROR is then an errno. */
kpti_et_chunk *kpti_et_journal_take(kpti_et_journal *journal, uint32_t stream, uint64_t words,
                                    uint64_t os_tid, int *error);
/* Frees the memory and the address space of CHUNK, which is full and is not read while recording goes on. */
void kpti_et_journal_leave(kpti_et_journal *journal, kpti_et_chunk *chunk);
/* Returns the descriptor, and opens the file again if the program has closed it. Returns -1 if that fails:
 * the file has no name, or its path has another file. */
int kpti_et_journal_descriptor(kpti_et_journal *journal);
/* Returns the journal's bytes from AT on. *SIZE receives how many are contiguous; more may follow in
 * another mapping. Returns NULL if these *SIZE bytes are not mapped any more, since address space was short. */
const char *kpti_et_journal_at(const kpti_et_journal *journal, uint64_t at, uint64_t *size);

/* Prepare space for the next chunks in three steps. _next returns the extent to prepare, of at most BYTES,
 * under the lock. _make prepares it without the lock, while other threads allocate chunks. _made records
 * the result in the journal, under the lock. Open prepares the first extent. */
kpti_et_extent kpti_et_journal_next(const kpti_et_journal *journal, uint64_t bytes);
int kpti_et_extent_make(kpti_et_extent extent); /* returns 0 if it can't */
void kpti_et_journal_made(kpti_et_journal *journal, kpti_et_extent extent);

#ifdef __cplusplus
}
#endif
#endif
