#include "python_tracer/state/quiesce.h"

#include <sched.h>

#include "core/base/assert.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/thread_state.h"
#include "python_tracer/state/tracing_lock.h"

/* Whether a thread has been inside an append to one of the tracer's streams ever since ROUND began. Such a
 * thread may not have seen an earlier change yet. A thread that has left its callback sees the change at
 * its next append. Each thread is checked off by itself, since with many busy threads there is hardly a
 * moment at which all of them are outside. */
static int any_busy(kpti_tracer *tracer, uint32_t round)
{
    int busy = 0;
    kpti_tracing_lock();
    for (kpti_stream *s = tracer->streams; s; s = s->sibling) {
        if (s->quiesced_round == round) continue;
        if (s->thread && s->thread != kpti_thread_self &&
            atomic_load_explicit(&s->thread->busy, memory_order_acquire))
            busy = 1;
        else
            s->quiesced_round = round;
    }
    kpti_tracing_unlock();
    return busy;
}

/* A callback takes nanoseconds, unless its thread is preempted inside it. That thread may be waiting for
 * the GIL, so a caller that holds the GIL releases it between checks. */
void kpti_wait_for_callbacks(kpti_tracer *tracer)
{
    enum { SPINS = 100 };
    const uint32_t round = ++tracer->quiesce_rounds;
    kpti_assert(!kpti_tracing_lock_is_mine()); /* a thread inside a callback may need it */
    kpti_process_barrier();
    for (int i = 0; any_busy(tracer, round); i++) {
        if (i < SPINS) continue;
        if (kpti_may_touch_python()) {
            Py_BEGIN_ALLOW_THREADS;
            (void)sched_yield();
            Py_END_ALLOW_THREADS;
        } else {
            (void)sched_yield();
        }
    }
    kpti_process_barrier();
}
