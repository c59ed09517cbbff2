/* open_events.h: writes the events with which a chunk begins: the calls that are open there. Inline, for event_stream.c
 * only. */
#ifndef KPTI_PYTHON_TRACER_CHUNKS_OPEN_EVENTS_H
#define KPTI_PYTHON_TRACER_CHUNKS_OPEN_EVENTS_H

#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/tracer_state.h"

/* Writes the answer of the tracer's host, if it gave one, after the open call at INDEX. Returns the end. */
static inline kpti_event *kpti_put_answer(const kpti_stream *stream, kpti_open_stack open,
                                          uint32_t index, uint64_t ticks, kpti_event *at)
{
    for (uint32_t k = 0; k < open.answer_count; k++) {
        const kpti_open_answer *a = &open.answers[k];
        if (a->index != index || a->bit != stream->tracer->bit) continue;
        *at++ = kpti_event_make(KPTI_EVENT_WATCH, (uint32_t)a->call_id & KPTI_MAX_NUMBER, ticks);
        *at++ = a->answer;
    }
    return at;
}

/* Writes the open calls that the tracer records at the start of a chunk. Returns the end. */
static inline kpti_event *kpti_put_open(const kpti_stream *stream, kpti_open_stack open,
                                        uint64_t ticks, kpti_event *at)
{
    for (uint32_t i = 0; i < open.count; i++) {
        if (!(open.masks[i] & stream->tracer->bit)) continue;
        *at++ = kpti_event_make(open.are_new ? KPTI_EVENT_ENTER : KPTI_EVENT_OPEN,
                                open.functions[i], ticks);
        if (!open.are_new && open.lines[i] && open.lines[i] <= KPTI_MAX_NUMBER)
            *at++ = kpti_event_make(KPTI_EVENT_LINE, open.lines[i], ticks);
        if (open.answer_count)
            at = kpti_put_answer(stream, open, (uint32_t)(open.functions - open.memory) + i, ticks,
                                 at);
    }
    return at;
}

#endif
