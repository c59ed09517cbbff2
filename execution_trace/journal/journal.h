/* journal.h: the file beside a trace that holds what is recorded until the trace is complete. It is mapped and
 * shared with the file, so what was recorded survives the process, however it ends. Room is reserved before it
 * is touched: a full disk is an error here, never a signal later.
 *
 *   head, chunks  [0, bytes)    made ready for chunks to come  [bytes, ready): zeroes
 *
 * What is below is called under the recorder's lock, unless it says otherwise; it is opened and closed when
 * nothing is recorded. */
#ifndef KPTI_EXECUTION_TRACE_JOURNAL_JOURNAL_H
#define KPTI_EXECUTION_TRACE_JOURNAL_JOURNAL_H

#include <limits.h>
#include <stddef.h>

#include "core/base/file_id.h"
#include "execution_trace/journal/journal_format.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A part of the file, mapped; what is behind the file's end is not touched. A later one may begin before it
 * ends. */
typedef struct kpti_et_window {
    struct kpti_et_window *before;
    char *bytes;
    uint64_t begin; /* in the file */
    uint64_t size;
} kpti_et_window;

/* … of which room is to be made. */
typedef struct kpti_et_stretch {
    int fd;
    kpti_file_id id;
    char *bytes;
    uint64_t begin;
    uint64_t size; /* 0: there is nothing to do */
} kpti_et_stretch;

typedef struct kpti_et_journal {
    int fd;          /* the program may close it (file_descriptor.h) */
    kpti_file_id id; /* the windows hold it */
    int is_lost; /* a chunk was refused, as the program had closed fd and the file can't be opened again */
    uint64_t bytes; /* taken so far; 0: none is open */
    uint64_t ready;
    kpti_et_head *head;
    kpti_et_window *last;
    int is_tight; /* addresses are short: chunks have windows of their own */
    char path[PATH_MAX];
} kpti_et_journal;

/* Makes PATH, replacing what is there; NULL: a file without a name. 0 or an errno. */
int kpti_et_journal_open(kpti_et_journal *journal, const char *path);
/* Closes it; WANTED: the file stays. What of it is mapped is the caller's, to be given back when there is time:
 * that takes a millisecond for a few thousand pages. */
kpti_et_window *kpti_et_journal_close(kpti_et_journal *journal, int wanted);
/* WINDOW and those before it; on any thread. */
void kpti_et_windows_unmap(kpti_et_window *window);
/* In the child of a fork, which has none of its memory: the file is the parent's. */
void kpti_et_journal_forked(kpti_et_journal *journal);
/* Another chunk of WORDS at least; NULL: there is no room, and *ERROR says why. */
kpti_et_chunk *kpti_et_journal_take(kpti_et_journal *journal, uint32_t stream, uint64_t words,
                                    uint64_t os_tid, int *error);
/* CHUNK is full, and nobody reads while it is recorded: what it takes of memory and addresses is given back. */
void kpti_et_journal_leave(kpti_et_journal *journal, kpti_et_chunk *chunk);
/* The descriptor, opened again where the program has closed it. Returns -1 where that fails: the file has no name. */
int kpti_et_journal_descriptor(kpti_et_journal *journal);
/* What is in the journal from AT on, SIZE bytes in one piece; more may follow in another one. NULL: these SIZE bytes
 * are not mapped any more, as addresses are short. */
const char *kpti_et_journal_at(const kpti_et_journal *journal, uint64_t at, uint64_t *size);

/* What comes next, as much of BYTES as can be made ready now: by who has found it, without the lock, while others
 * take chunks. Then the journal is told. Some is made by open. */
kpti_et_stretch kpti_et_journal_next(const kpti_et_journal *journal, uint64_t bytes);
int kpti_et_stretch_make(kpti_et_stretch stretch); /* 0: it can't */
void kpti_et_journal_made(kpti_et_journal *journal, kpti_et_stretch stretch);

#ifdef __cplusplus
}
#endif
#endif
