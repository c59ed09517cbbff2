#include "python_tracer/chunks/chunk_freeze.h"

#include "core/base/assert.h"
#include "python_tracer/chunks/event_stream.h"
#include "python_tracer/state/quiesce.h"
#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/tracer_state.h"
#include "python_tracer/state/tracing_lock.h"

/* Trips the streams whose last chunk will be read and is not complete. Returns 1 if there are any. An owner
 * puts chunks that it begins from now on into a separate list, so the loop in kpti_chunks_freeze ends. */
static int trip_unsealed_locked(kpti_tracer *tracer)
{
    int any = 0;
    for (kpti_stream *s = tracer->streams; s; s = s->sibling) {
        if (s->sealed || s->later) continue;
        kpti_stream_trip(s);
        any = 1;
    }
    return any;
}

/* Seals the chunks of tripped streams whose owner was outside its callback. An owner that was about to open
 * its limit when the stream was tripped has opened the limit again; the next round handles that stream. */
static void seal_tripped_locked(kpti_tracer *tracer)
{
    for (kpti_stream *s = tracer->streams; s; s = s->sibling)
        if (!s->later && !atomic_load_explicit(&s->limit, memory_order_relaxed))
            kpti_stream_seal_locked(s);
}

void kpti_chunks_freeze(kpti_tracer *tracer)
{
    kpti_tracing_lock();
    tracer->readers++; /* from here on no chunk is dropped, and new chunks go to a separate list */
    while (trip_unsealed_locked(tracer)) {
        kpti_tracing_unlock();
        kpti_wait_for_callbacks(tracer);
        kpti_tracing_lock();
        seal_tripped_locked(tracer);
    }
    kpti_tracing_unlock();
}

void kpti_chunks_thaw(kpti_tracer *tracer)
{
    kpti_tracing_lock();
    kpti_assert(tracer->readers);
    if (--tracer->readers == 0) {
        for (kpti_stream *s = tracer->streams; s; s = s->sibling)
            kpti_stream_join_locked(s);
    }
    kpti_tracing_unlock();
}
