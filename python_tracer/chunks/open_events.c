#include "python_tracer/chunks/open_events.h"

#include "core/base/hash.h"
#include "core/callstacks/function_table.h"
#include "python_tracer/state/tracer_state.h"

/* Writes the answer of the tracer's host, if it gave one, after the open call at INDEX. Returns the end. */
static kpti_event *put_answer(const kpti_stream *stream, kpti_open_stack open, uint32_t index,
                              uint64_t ticks, kpti_event *at)
{
    for (uint32_t k = 0; k < open.answer_count; k++) {
        const kpti_open_answer *a = &open.answers[k];
        if (a->index != index || a->bit != stream->tracer->bit) continue;
        *at++ = kpti_event_make(KPTI_EVENT_WATCH, (uint32_t)a->call_id & KPTI_MAX_NUMBER, ticks);
        *at++ = a->answer;
    }
    return at;
}

static int is_recorded(const kpti_stream *stream, kpti_open_stack open, uint32_t i)
{
    return (open.masks[i] & stream->tracer->bit) != 0;
}

static kpti_event *put_call(const kpti_stream *stream, kpti_open_stack open, uint32_t i,
                            uint64_t ticks, kpti_event *at)
{
    *at++ = kpti_event_make(open.are_new ? KPTI_EVENT_ENTER : KPTI_EVENT_OPEN, open.functions[i],
                            ticks);
    if (!open.are_new && open.lines[i] && open.lines[i] <= KPTI_MAX_NUMBER)
        *at++ = kpti_event_make(KPTI_EVENT_LINE, open.lines[i], ticks);
    if (open.answer_count)
        at = put_answer(stream, open, (uint32_t)(open.functions - open.memory) + i, ticks, at);
    return at;
}

/* Writes the open calls from FIRST on. */
static kpti_event *put_calls(const kpti_stream *stream, kpti_open_stack open, uint32_t first,
                             uint64_t ticks, kpti_event *at)
{
    for (uint32_t i = first; i < open.count; i++)
        if (is_recorded(stream, open, i)) at = put_call(stream, open, i, ticks, at);
    return at;
}

kpti_event *kpti_put_open(const kpti_stream *stream, kpti_open_stack open, uint64_t ticks,
                          kpti_event *at)
{
    return put_calls(stream, open, 0, ticks, at);
}

uint64_t kpti_open_digest(const kpti_stream *stream, kpti_open_stack open)
{
    uint64_t digest = KPTI_HASH_BYTES;
    for (uint32_t i = 0; i < open.count; i++)
        if (open.masks[i] & stream->tracer->bit)
            digest = (digest ^ open.functions[i]) * KPTI_HASH_FNV_PRIME;
    return digest | 1;
}

/* --- the chunks after the first ---------------------------------------------------------------- */

/* Copies the details from *I on and moves *I behind them. Those that have a time get TICKS: in this chunk their own would
 * mean another one. */
static kpti_event *put_details(const kpti_open_at_end *before, uint64_t *i, uint64_t ticks,
                               kpti_event *at)
{
    for (; *i < before->count; (*i)++) {
        const uint32_t kind = kpti_event_kind(before->events[*i]);
        if (kind == KPTI_EVENT_OPEN) break;
        *at++ = kind == KPTI_EVENT_LINE || kind == KPTI_EVENT_CALLER
                    ? kpti_event_make(kind, kpti_event_number(before->events[*i]), ticks)
                    : before->events[*i];
        if (kpti_event_is_long(kind) && *i + 1 < before->count) *at++ = before->events[++*i];
    }
    return at;
}

static void skip_details(const kpti_open_at_end *before, uint64_t *i)
{
    for (; *i < before->count && kpti_event_kind(before->events[*i]) != KPTI_EVENT_OPEN; (*i)++)
        if (kpti_event_is_long(kpti_event_kind(before->events[*i]))) ++*i;
}

static uint32_t kind_of(uint32_t function)
{
    kpti_function_view view = {.kind = KPT_KIND_PYTHON};
    if (function == KPTI_OPEN_SPAN) return KPT_KIND_RANGE_BEGIN;
    (void)kpti_function_describe(NULL, function, &view);
    return view.kind;
}

kpti_event *kpti_put_open_after(const kpti_stream *stream, kpti_open_stack open,
                                const kpti_open_at_end *before, uint64_t ticks, kpti_event *at)
{
    uint32_t frame = 0;
    uint64_t i = 0;
    while (i < before->count) {
        const uint32_t function = kpti_event_number(before->events[i++]);
        const uint32_t kind = kind_of(function);
        while (frame < open.count && !is_recorded(stream, open, frame))
            frame++;
        if (kind == KPT_KIND_OPERATOR || kind == KPT_KIND_RANGE_BEGIN ||
            (kind == KPT_KIND_PYTHON && !open.was_walked)) {
            *at++ = kpti_event_make(KPTI_EVENT_OPEN, function, ticks);
            at = put_details(before, &i, ticks, at);
            continue;
        }
        skip_details(before, &i); /* the walk has newer ones */
        if (kind == KPT_KIND_PYTHON && frame < open.count && open.functions[frame] == function)
            at = put_call(stream, open, frame++, ticks, at);
    }
    return put_calls(stream, open, frame, ticks, at);
}
