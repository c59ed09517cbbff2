/* memory_moments.h: the live bytes and blocks of each sum at moments: at one time, or at up to KPTI_MOMENTS times over a
 * recording of any length. A moment has the sums that have changed since the one before it.
 *
 * A moment is at the first multiple of step_ns after a change, so the last one before a time T has what was alive at T, but for
 * changes in less than step_ns. When there are too many moments, or more than KPTI_MOMENT_CHANGES changes, step_ns doubles, and
 * moments that lie between two multiples become one. Two moments may have more: a change for each sum. */
#ifndef KPTI_WRITERS_MEMORY_CHANGES_MEMORY_MOMENTS_H
#define KPTI_WRITERS_MEMORY_CHANGES_MEMORY_MOMENTS_H

#include "core/base/growable_array.h"
#include "core/base/u64_map.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KPTI_MOMENTS = 256, KPTI_MOMENT_CHANGES = 1 << 18, KPTI_MOMENTS_FIRST_NS = 1 << 18 };

typedef struct kpti_memory_change {
    int64_t bytes;
    int64_t blocks;
    uint32_t sum; /* its index */
} kpti_memory_change;

typedef struct kpti_memory_moment {
    uint64_t since_ns; /* since the begin of the recording */
    uint64_t end;      /* of its changes, which begin at the end of those of the moment before it */
} kpti_memory_moment;

/* The amounts of a sum at the last moment. */
typedef struct kpti_moment_sum {
    int64_t bytes;
    int64_t blocks;
    int is_changed; /* listed in changed */
} kpti_moment_sum;

/* Initialized with zeroes and the first two. */
typedef struct kpti_memory_moments {
    uint64_t next_ns; /* time of the next moment since the begin */
    uint64_t step_ns; /* 0: there is one moment */
    kpti_memory_moment moments[KPTI_MOMENTS + 1];
    uint32_t count;
    kpti_memory_change *changes;
    uint64_t change_count;
    uint64_t change_capacity;
    kpti_moment_sum *sums;
    uint64_t sum_capacity;
    uint32_t *changed;
    uint64_t changed_count;
    uint64_t changed_capacity;
} kpti_memory_moments;

/* Sets *BYTES and *BLOCKS to the live amounts of sum INDEX. */
typedef void (*kpti_moment_amount_fn)(const void *ctx, uint32_t index, int64_t *bytes,
                                      int64_t *blocks);

/* Notes that sum INDEX has changed. Returns 0 if there is no memory. */
int kpti_memory_moments_changed(kpti_memory_moments *moments, uint32_t index);
/* Adds the moment that lies before SINCE_NS, at which the sums change next. Times do not go backwards, and are below 2^62.
 * Returns 0 if there is no memory. */
int kpti_memory_moments_before(kpti_memory_moments *moments, uint64_t since_ns,
                               kpti_moment_amount_fn amount, const void *ctx);
/* Adds the last moment, at SINCE_NS, unless the only one was added. Returns 0 if there is no memory. */
int kpti_memory_moments_end(kpti_memory_moments *moments, uint64_t since_ns,
                            kpti_moment_amount_fn amount, const void *ctx);
void kpti_memory_moments_free(kpti_memory_moments *moments);

#ifdef __cplusplus
}
#endif
#endif
