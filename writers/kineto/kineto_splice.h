/* kineto_splice.h: a trace of Kineto with more events in its list, written to another file or to its
 * own place: there appears the whole of it, or what was there stays.
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
    kpti_chrome_events events; /* in the file's base time, with its next number */
} kpti_splice;

/* Why it failed. */
typedef struct kpti_splice_error {
    int os_error;
    int of_target;    /* else of the source */
    const char *text; /* empty: the system's */
} kpti_splice_error;

/* Opens SOURCE, and looks at it. 0 or an errno. */
int kpti_splice_open(kpti_splice *splice, const char *source, kpti_splice_error *error);

void kpti_splice_leave(kpti_splice *splice);

/* Text for what GPUs did. */
typedef struct kpti_splice_stacks {
    const kpti_kineto_gpu *gpu; /* of SOURCE, sorted */
    const kpti_fragments *texts;
} kpti_splice_stacks;

/* Opens TARGET, which may be SOURCE, and copies the events that are there, with STACKS where they are not
 * NULL. 0, or an errno, and then there is nothing to close. */
int kpti_splice_begin(kpti_splice *splice, const char *target, int gzip,
                      const kpti_splice_stacks *stacks, kpti_splice_error *error);

/* With KEEP the target appears. 0 or the first errno of all. */
int kpti_splice_close(kpti_splice *splice, int keep, kpti_splice_error *error);

#ifdef __cplusplus
}
#endif
#endif
