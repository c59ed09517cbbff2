/* profile.h: a sink that adds up what a tracer delivers by function: how often it was called, the
 * time in it itself and with all that it called.
 *
 *   open ──> batch, batch, … (as a delivery's sink, in KPT_ORDER_THREAD) ──> rows ──> free
 *
 * Time grows with the calls, memory with the functions and the depth. One thread at a time; no
 * Python, no GIL. */
#ifndef KPTI_WRITERS_PROFILE_H
#define KPTI_WRITERS_PROFILE_H

#include "abi/kpt_activity.h"
#include "core/base/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_profile kpti_profile;

typedef struct kpti_profile_row {
    uint32_t name;   /* a kpt_name's index */
    uint32_t thread; /* a kpt_thread's, with KPTI_PROFILE_BY_THREAD */
    uint64_t calls;
    uint64_t own_ns;   /* without what it called */
    uint64_t total_ns; /* with that; of a call within a call of the same function only the outer */
    uint64_t min_ns;   /* the shortest call, with what it called */
    uint64_t max_ns;
    uint32_t step; /* one more than the number of its step; 0: none */
} kpti_profile_row;

enum { KPTI_PROFILE_BY_THREAD = 1 << 0 }; /* a row for each thread of a function */

typedef enum kpti_profile_sort {
    KPTI_PROFILE_BY_OWN,
    KPTI_PROFILE_BY_TOTAL,
    KPTI_PROFILE_BY_CALLS,
    KPTI_PROFILE_BY_MAX
} kpti_profile_sort;

/* KPT_OK with *OUT, which is to be freed, or KPT_E_MEMORY. */
kpt_status kpti_profile_open(const kpti_heap *heap, uint32_t flags, kpti_profile **out);

/* A stretch of time, in the tracer's, from begin_ns up to end_ns. */
typedef struct kpti_profile_step {
    int64_t begin_ns;
    int64_t end_ns;
} kpti_profile_step;

/* One more than the number of the step, of COUNT in the order of their begins and one after the other, that NS is in;
 * 0: it is in none. */
uint32_t kpti_profile_step_at(const kpti_profile_step *steps, uint32_t count, int64_t ns);

/* Before the first batch: a row for each step of a function, too. A call counts where it began. STEPS, COUNT of
 * them as above, are needed until free. */
void kpti_profile_by_step(kpti_profile *profile, const kpti_profile_step *steps, uint32_t count);

/* A kpt_batch_fn: PROFILE is a kpti_profile. KPT_OK, KPT_E_MEMORY, KPT_E_SIZE, KPT_E_LIMIT, or
 * KPT_E_UNSUPPORTED for another order. */
kpt_status kpti_profile_batch(void *profile, const kpt_batch *batch);

/* Once all came: the rows, *COUNT of them, the largest first; equal ones as their functions came.
 * They are the profile's, until the next call. */
const kpti_profile_row *kpti_profile_rows(kpti_profile *profile, kpti_profile_sort sort,
                                          uint32_t *count);

/* The function, or thread, of a row; NULL where it never came. Their strings are the tracer's. */
const kpt_name *kpti_profile_name(const kpti_profile *profile, uint32_t name);
const kpt_thread *kpti_profile_thread(const kpti_profile *profile, uint32_t thread);

/* Of all calls that came. */
uint64_t kpti_profile_calls(const kpti_profile *profile);

void kpti_profile_free(kpti_profile *profile);

#ifdef __cplusplus
}
#endif
#endif
