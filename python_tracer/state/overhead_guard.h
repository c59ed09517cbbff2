/* overhead_guard.h: the overhead guard of a tracer that asks for one: Python functions whose calls are so many
 * and so short that recording them would cost more of the program's time than allowed are switched off
 * as it runs, and reported with their calls until then.
 *
 * It looks at each chunk as it is sealed: what its events cost, against the time that it spans. Where
 * that is too much, the functions with the most short calls go until it is not. A call is short if
 * nothing was recorded inside it. "_locked": the tracing lock is held. */
#ifndef KPTI_PYTHON_TRACER_STATE_OVERHEAD_GUARD_H
#define KPTI_PYTHON_TRACER_STATE_OVERHEAD_GUARD_H

#include "abi/impl/kpti_impl.h"
#include "core/recording/recording.h"

typedef struct kpti_guarded {
    uint64_t calls; /* seen in sealed chunks */
    int off;
} kpti_guarded;

typedef struct kpti_guard {
    kpti_guarded *functions; /* by id */
    uint64_t capacity;
    uint32_t off_count;
} kpti_guard;

/* What an event costs the program, hook included: a little more than is measured, to be on the safe
 * side. */
enum { KPTI_EVENT_COST_NS = 45 };

/* Looks at a sealed chunk that took SPAN_NS. 1 if functions were switched off: caches must go. */
int kpti_guard_check_locked(const kpti_env *env, kpti_guard *guard, uint32_t permille,
                            const kpti_chunk *chunk, uint64_t span_ns);
int kpti_guard_allows_locked(const kpti_guard *guard, uint32_t function);
/* Tells the host's log what was switched off. No lock is held; nobody records. */
void kpti_guard_report(const kpti_env *env, const kpti_guard *guard);
void kpti_guard_free(const kpti_env *env, kpti_guard *guard);

#endif
