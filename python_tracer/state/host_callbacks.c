#include "python_tracer/state/host_callbacks.h"

#include <time.h>

#include "core/base/assert.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/state/thread_state.h"
#include "python_tracer/state/tracing_lock.h"

struct kpti_host_call {
    const struct kpti_tracer *tracer;
    const kpti_thread *thread; /* an OS thread: a call may continue in another greenlet */
    kpti_host_call *next;
};

static kpti_host_call *calls;

static const kpti_thread *self(void)
{
    return kpti_thread_real(kpti_thread_self);
}

kpti_host_call *kpti_host_call_begin_locked(const struct kpti_tracer *tracer)
{
    kpti_host_call *call = malloc(sizeof *call);
    kpti_assert(kpti_tracing_lock_is_mine());
    if (!call) return NULL;
    *call = (kpti_host_call){tracer, self(), calls};
    calls = call;
    return call;
}

void kpti_host_call_end(kpti_host_call *call)
{
    kpti_host_call **link = &calls;
    kpti_tracing_lock();
    while (*link && *link != call)
        link = &(*link)->next;
    if (*link) *link = call->next;
    kpti_tracing_unlock();
    free(call);
}

static int any_of_others(const struct kpti_tracer *tracer)
{
    int any = 0;
    kpti_tracing_lock();
    for (const kpti_host_call *call = calls; call && !any; call = call->next)
        any = call->tracer == tracer && call->thread != self();
    kpti_tracing_unlock();
    return any;
}

void kpti_host_calls_wait(const struct kpti_tracer *tracer)
{
    static const struct timespec a_moment = {0, 50000};
    kpti_assert(!kpti_tracing_lock_is_mine()); /* the host's threads may need it */
    while (any_of_others(tracer) && !kpti_python_is_ending()) {
        if (kpti_may_touch_python()) {
            Py_BEGIN_ALLOW_THREADS;
            (void)nanosleep(&a_moment, NULL);
            Py_END_ALLOW_THREADS;
        } else {
            (void)nanosleep(&a_moment, NULL);
        }
    }
}

/* Removes the calls of THREAD, or of all other threads if KEEP is set. */
static void drop_locked(const kpti_thread *thread, int keep)
{
    kpti_host_call **link = &calls;
    kpti_assert(kpti_tracing_lock_is_mine());
    while (*link) {
        kpti_host_call *call = *link;
        if ((call->thread == thread) == keep) {
            link = &call->next;
            continue;
        }
        *link = call->next;
        free(call);
    }
}

void kpti_host_calls_drop_locked(const kpti_thread *thread)
{
    drop_locked(thread, 0);
}

void kpti_host_calls_forked_locked(void)
{
    drop_locked(self(), 1);
}
