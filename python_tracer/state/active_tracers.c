#include "python_tracer/state/active_tracers.h"

#include "core/base/assert.h"
#include "python_tracer/state/code_filter.h"
#include "python_tracer/state/overhead_guard.h"
#include "python_tracer/state/thread_state.h"
#include "python_tracer/state/tracer_state.h"
#include "python_tracer/state/tracing_lock.h"

static kpti_tracer *recording[KPTI_MAX_TRACERS]; /* by bit */
static _Atomic uint32_t changes;
static int starting; /* tracers about to be added */

_Atomic int kpti_greenlets_wanted;

/* Updates kpti_greenlets_wanted: set if an active tracer records tasks. */
static void note_wishes_locked(void)
{
    int wanted = 0;
    kpti_assert(kpti_tracing_lock_is_mine());
    for (int i = 0; i < KPTI_MAX_TRACERS; i++)
        wanted |= recording[i] && recording[i]->task_key;
    atomic_store_explicit(&kpti_greenlets_wanted, wanted, memory_order_relaxed);
}

int kpti_tracers_add_locked(kpti_tracer *tracer)
{
    kpti_assert(kpti_tracing_lock_is_mine() && !tracer->bit);
    for (int i = 0; i < KPTI_MAX_TRACERS; i++) {
        if (recording[i]) continue;
        recording[i] = tracer;
        tracer->bit = UINT32_C(1) << i;
        atomic_fetch_add(&changes, 1);
        note_wishes_locked();
        return 1;
    }
    return 0;
}

void kpti_tracers_remove_locked(kpti_tracer *tracer)
{
    for (int i = 0; i < KPTI_MAX_TRACERS; i++)
        if (recording[i] == tracer) recording[i] = NULL;
    note_wishes_locked();
}

kpti_tracer *kpti_tracers_at_locked(int i)
{
    kpti_assert(kpti_tracing_lock_is_mine() && i >= 0 && i < KPTI_MAX_TRACERS);
    return recording[i];
}

void kpti_tracers_add_starting_locked(int count)
{
    kpti_assert(kpti_tracing_lock_is_mine());
    starting += count;
    kpti_assert(starting >= 0);
}

int kpti_tracers_are_idle_locked(int own)
{
    kpti_assert(kpti_tracing_lock_is_mine());
    for (int i = 0; i < KPTI_MAX_TRACERS; i++)
        if (recording[i]) return 0;
    return starting <= own;
}

void kpti_tracers_forked_locked(void)
{
    starting = 0;
}

uint32_t kpti_tracers_changes(void)
{
    return atomic_load(&changes);
}

/* Whether a tracer needs the general path: the fast path counts no call depth and reads only one clock. */
static int goes_general(const kpti_tracer *tracer)
{
    return tracer->args.max_depth || kpti_tracer_has_clock(tracer);
}

/* Whether the fast path can record everything that TRACER records. */
static int is_plain(const kpti_tracer *tracer)
{
    const uint32_t choosy = KPT_TRACE_NO_C_CALLS | KPT_TRACE_ALL_CALLABLES;
    return !tracer->filters.count && !(tracer->args.flags & choosy) && !goes_general(tracer) &&
           !tracer->args.overhead_permille;
}

uint32_t kpti_tracers_every_locked(void)
{
    uint32_t mask = 0;
    kpti_assert(kpti_tracing_lock_is_mine());
    for (int i = 0; i < KPTI_MAX_TRACERS; i++) {
        if (!recording[i]) continue;
        kpti_assert(recording[i]->bit == UINT32_C(1) << i);
        if (!is_plain(recording[i])) return 0;
        mask |= recording[i]->bit;
    }
    return mask;
}

uint32_t kpti_tracers_mask(uint32_t function, kpt_str file, kpt_str module, uint32_t mark,
                           int is_coroutine)
{
    uint32_t mask = 0;
    kpti_tracing_lock();
    for (int i = 0; i < KPTI_MAX_TRACERS; i++) {
        const kpti_tracer *tracer = recording[i];
        if (!tracer) continue;
        if (kpti_filters_allow(&tracer->filters, file, module) &&
            kpti_guard_allows_locked(&tracer->guard, function))
            mask |= tracer->task_key && is_coroutine ? tracer->bit | KPTI_MASK_TASKS : tracer->bit;
        if (goes_general(tracer)) mask |= KPTI_MASK_GENERAL;
        for (uint32_t k = 0; mark && k < tracer->watch_count; k++)
            if (tracer->watches[k].mark == mark) mask |= KPTI_MASK_WATCHED;
    }
    kpti_tracing_unlock();
    return mask;
}

int kpti_tracers_needs_module(void)
{
    int needed = 0;
    kpti_tracing_lock();
    for (int i = 0; i < KPTI_MAX_TRACERS; i++)
        needed |= recording[i] && recording[i]->filters.any_module;
    kpti_tracing_unlock();
    return needed;
}
