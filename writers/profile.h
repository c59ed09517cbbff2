/* profile.h: a sink that adds up a delivery by function: the number of calls, the time in the function itself,
 * and the time including its callees.
 *
 *   open ──> batch, batch, … (as a delivery's sink, in KPT_ORDER_THREAD) ──> rows ──> free
 *
 * Time grows with the number of calls, memory with the number of functions and the depth. Rows by thread can be passed on
 * while they are made, so that there may be any number. One thread at a time; no Python, no GIL. */
#ifndef KPTI_WRITERS_PROFILE_H
#define KPTI_WRITERS_PROFILE_H

#include "abi/kpt_activity.h"
#include "core/base/allocator.h"
#include "writers/annotations/step_intervals.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_profile kpti_profile;

typedef struct kpti_profile_row {
    uint32_t name;   /* index of a kpt_name */
    uint32_t thread; /* index of a kpt_thread, with KPTI_PROFILE_BY_THREAD */
    uint64_t calls;
    uint64_t own_ns; /* without callees */
    /* with callees; of nested calls of the same function only the outermost counts */
    uint64_t total_ns;
    uint64_t min_ns; /* the shortest call, with callees */
    uint64_t max_ns;
    uint32_t step; /* index of its step + 1; 0: no step */
    uint32_t kind; /* KPT_KIND_* of its calls */
} kpti_profile_row;

enum { KPTI_PROFILE_BY_THREAD = 1 << 0 }; /* a row for each thread of a function */

typedef enum kpti_profile_sort {
    KPTI_PROFILE_BY_OWN,
    KPTI_PROFILE_BY_TOTAL,
    KPTI_PROFILE_BY_CALLS,
    KPTI_PROFILE_BY_MAX
} kpti_profile_sort;

/* Returns KPT_OK and sets *OUT, which the caller frees, or returns KPT_E_MEMORY. */
kpt_status kpti_profile_open(const kpti_heap *heap, uint32_t flags, kpti_profile **out);

/* Makes a row for each function and step. Call it before the first batch. A call counts for the step in which
 * it began. STEPS, as in step_intervals.h, must live until free. */
void kpti_profile_by_step(kpti_profile *profile, const kpti_profile_step *steps, uint32_t count);

/* Receives COUNT rows, of whole threads. Returns KPT_OK, or a status that ends the delivery. */
typedef kpt_status (*kpti_profile_take_fn)(void *ctx, const kpti_profile_row *rows, uint32_t count);

/* With KPTI_PROFILE_BY_THREAD: rows are passed to TAKE while they are made, in the order of their threads, once there are
 * some thousands of threads that have ended; then the profile forgets them and their threads. Call it before the first
 * batch. After the last batch, pass_rest passes the rest; its status is that of TAKE. */
void kpti_profile_pass(kpti_profile *profile, kpti_profile_take_fn take, void *ctx);
kpt_status kpti_profile_pass_rest(kpti_profile *profile);

/* With KPTI_PROFILE_BY_THREAD, before the first batch: of the rows of many threads, at least the MOST largest are kept. */
void kpti_profile_keep(kpti_profile *profile, kpti_profile_sort sort, uint32_t most);

/* A kpt_batch_fn. PROFILE is a kpti_profile. Returns KPT_OK, KPT_E_MEMORY, KPT_E_SIZE, KPT_E_LIMIT, or
 * KPT_E_UNSUPPORTED for another order. */
kpt_status kpti_profile_batch(void *profile, const kpt_batch *batch);

/* After the last batch: returns *COUNT rows, largest first; equal rows in the order of their functions. The
 * profile owns them; they are valid until the next call. */
const kpti_profile_row *kpti_profile_rows(kpti_profile *profile, kpti_profile_sort sort,
                                          uint32_t *count);

/* Return the function or the thread of a row, or NULL if it was not delivered. The tracer owns their strings. */
const kpt_name *kpti_profile_name(const kpti_profile *profile, uint32_t name);
const kpt_thread *kpti_profile_thread(const kpti_profile *profile, uint32_t thread);

/* Returns the number of all calls. */
uint64_t kpti_profile_calls(const kpti_profile *profile);

void kpti_profile_free(kpti_profile *profile);

#ifdef __cplusplus
}
#endif
#endif
