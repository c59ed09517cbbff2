#include "python_tracer/tracer_stats.h"

#include "python_tracer/frames/open_frames.h"
#include "python_tracer/hooks/hooks.h"
#include "python_tracer/interpreter/struct_layouts.h"
#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/tracing_lock.h"

void kpti_tracer_stats(const kpti_tracer *tracer, kpt_stats *out)
{
    kpti_tracing_lock();
    out->threads += tracer->freed.threads;
    out->events_dropped += tracer->freed.events_dropped;
    for (kpti_stream *s = tracer->streams; s; s = s->sibling) {
        kpti_event *cursor = atomic_load_explicit(&s->cursor, memory_order_relaxed);
        for (const kpti_chunk *c = s->first; c; c = c->next)
            out->events += kpti_chunk_own_events(c);
        if (s->last && !s->sealed)
            out->events += (uint64_t)(cursor - s->last->events) - s->last->repeated;
        out->events_dropped += atomic_load_explicit(&s->dropped_total, memory_order_relaxed);
        out->threads++;
    }
    out->events += tracer->given.events;
    out->bytes_held = tracer->bytes_held;
    out->chunks_sealed = tracer->chunks_sealed;
    out->chunks_refused = tracer->chunks_refused;
    out->events_repaired = tracer->repairs;
    if (!tracer->bit) out->threads_unreached = kpti_hooks_unreached();
    out->functions_disabled = tracer->guard.off_count;
    out->stacks_walked = kpti_open_frames_walks() - tracer->walks_before;
    out->layouts_unknown = KPTI_LAYOUTS & ~kpti_layouts;
    kpti_tracing_unlock();
}
