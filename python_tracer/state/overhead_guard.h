/* overhead_guard.h: the overhead guard of a tracer with args.overhead_permille. It switches off Python
 * functions with so many and so short calls that recording them would cost more of the program's time than
 * allowed. It reports each of them with the number of calls until then.
 *
 * The guard checks each chunk when it is sealed. It compares the cost of the chunk's events with the time
 * that the chunk spans. If the cost is too high, it switches off the functions with the most short calls
 * until the rest is within the limit. A call is short if no event was recorded inside it. "_locked": the
 * caller holds the tracing lock. */
#ifndef KPTI_PYTHON_TRACER_STATE_OVERHEAD_GUARD_H
#define KPTI_PYTHON_TRACER_STATE_OVERHEAD_GUARD_H

#include "abi/impl/kpti_impl.h"
#include "core/recording/recording.h"

typedef struct kpti_guarded {
    uint64_t calls; /* counted in sealed chunks */
    int off;
} kpti_guarded;

typedef struct kpti_guard {
    kpti_guarded *functions; /* by id */
    uint64_t capacity;
    uint32_t off_count;
} kpti_guard;

/* The cost of one event for the program, including the hook; a little more than measured, to be safe. */
enum { KPTI_EVENT_COST_NS = 45 };

/* Checks a sealed chunk that spans SPAN_NS. Returns 1 if it switched off functions; the caller must then
 * invalidate the caches. */
int kpti_guard_check_locked(const kpti_env *env, kpti_guard *guard, uint32_t permille,
                            const kpti_chunk *chunk, uint64_t span_ns);
int kpti_guard_allows_locked(const kpti_guard *guard, uint32_t function);
/* Writes the functions that were switched off to the host's log. The caller holds no lock, and no thread
 * records. */
void kpti_guard_report(const kpti_env *env, const kpti_guard *guard);
void kpti_guard_free(const kpti_env *env, kpti_guard *guard);

#endif
