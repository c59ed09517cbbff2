/* journal.h: the file beside a trace that holds what is recorded until the trace is complete. Its chunks are
 * mapped and shared with the file, so what was recorded survives the process, however it ends. Room is
 * reserved before it is mapped: a full disk is an error here, never a signal later.
 *
 * Chunks are taken under the recorder's lock; it is opened and closed when nothing is recorded. */
#ifndef KPTI_ET_JOURNAL_H
#define KPTI_ET_JOURNAL_H

#include <limits.h>
#include <stddef.h>

#include "journal_format.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_et_journal {
    int fd;
    uint64_t bytes;     /* its size so far; 0: none is open */
    kpti_et_head *head; /* mapped */
    char path[PATH_MAX];
} kpti_et_journal;

/* Makes PATH, replacing what is there; NULL: a file without a name. 0 or an errno. */
int kpti_et_journal_open(kpti_et_journal *journal, const char *path);
/* Closes it; WANTED: the file stays. */
void kpti_et_journal_close(kpti_et_journal *journal, int wanted);
/* Another chunk of WORDS at least, mapped; NULL: there is no room, and *ERROR says why. */
kpti_et_chunk *kpti_et_journal_take(kpti_et_journal *journal, uint32_t stream, uint64_t words,
                                    uint64_t os_tid, int *error);
void kpti_et_chunk_unmap(kpti_et_chunk *chunk);

#ifdef __cplusplus
}
#endif
#endif
