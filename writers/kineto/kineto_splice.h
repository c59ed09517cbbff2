/* kineto_splice.h: writes a Kineto trace with more events in its list, to another file or to its own path. The
 * target appears completely, or the old file stays.
 *
 *   open ──> begin ──> kpti_chrome_put(&splice->events, …) … ──> close
 *    └─────> leave: nothing is written
 *
 * One thread at a time; no GIL. */
#ifndef KPTI_WRITERS_KINETO_KINETO_SPLICE_H
#define KPTI_WRITERS_KINETO_KINETO_SPLICE_H

#include "writers/chrome/chrome_events.h"
#include "writers/kineto/kineto_kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_splice {
    kpti_kineto_file file;
    kpti_out_file out;
    kpti_chrome_events events; /* with the file's base time and next number */
} kpti_splice;

/* The reason of a failure. */
typedef struct kpti_splice_error {
    int os_error;
    int of_target;    /* 1: of the target; 0: of the source */
    const char *text; /* if empty: use the text of os_error */
} kpti_splice_error;

/* Opens and parses SOURCE. Returns 0 or an errno. */
int kpti_splice_open(kpti_splice *splice, const char *source, kpti_splice_error *error);

void kpti_splice_leave(kpti_splice *splice);

/* Texts for GPU activities. */
typedef struct kpti_splice_stacks {
    const kpti_kineto_gpu *gpu; /* of SOURCE, sorted */
    const kpti_fragments *texts;
} kpti_splice_stacks;

/* Opens TARGET, which may be SOURCE, and copies the existing events, with STACKS unless it is NULL. Returns 0
 * or an errno. After an error there is nothing to close. */
int kpti_splice_begin(kpti_splice *splice, const char *target, int gzip,
                      const kpti_splice_stacks *stacks, kpti_splice_error *error);

/* Closes the splice. The target appears only if KEEP. Returns 0 or the first errno. */
int kpti_splice_close(kpti_splice *splice, int keep, kpti_splice_error *error);

#ifdef __cplusplus
}
#endif
#endif
