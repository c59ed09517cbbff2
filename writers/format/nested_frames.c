#include "writers/format/nested_frames.h"

kpt_status kpti_frames_init(kpti_frames *f, const kpti_frame_ops *ops, kpti_writer *writer)
{
    f->ops = ops;
    f->writer = writer;
    return kpti_spans_init(&f->spans, writer);
}

void kpti_frames_free(kpti_frames *f)
{
    if (f->spans.notes) kpti_spans_free(&f->spans);
}

/* Closes the frame of span BEGIN. A span that was never ended and that closes with the end of the recording is
 * complete. Any other span that closes here is loose. */
static kpt_status close_span(kpti_frames *f, uint32_t thread, int64_t ns, uint32_t begin,
                             int is_end)
{
    if (is_end && !kpti_spans_has_end(&f->spans, begin)) kpti_spans_written(&f->spans, begin);
    return f->ops->close(f->writer, thread, ns, NULL);
}

kpt_status kpti_frames_call(kpti_frames *f, const kpt_activity *call)
{
    const int is_end = (call->flags & KPT_ACTIVITY_ENDED_BY_STOP) != 0;
    kpt_status status = KPT_OK;
    uint32_t begin;
    if (call->phase == KPT_PHASE_BEGIN) return f->ops->open(f->writer, call, NULL);
    while (status == KPT_OK && (begin = kpti_spans_pop_of_call(&f->spans, call)))
        status = close_span(f, call->thread, call->end_ns, begin, is_end);
    if (status == KPT_OK) status = f->ops->close(f->writer, call->thread, call->end_ns, call);
    while (status == KPT_OK && (begin = kpti_spans_pop_after_call(&f->spans, call)))
        status = close_span(f, call->thread, call->end_ns, begin, 0);
    return status;
}

kpt_status kpti_frames_point(kpti_frames *f, const kpt_activity *point, const kpti_note *note)
{
    kpt_status status = KPT_OK;
    uint32_t begin = 0;
    uint32_t frame = 0;
    int is_frame = 0;
    if (note->what == KPTI_NOTE_BEGIN) {
        status = kpti_spans_begin(&f->spans, point, &is_frame);
        if (status != KPT_OK || !is_frame) return status;
        return f->ops->open(f->writer, point, note);
    }
    if (note->what == KPTI_NOTE_END) begin = kpti_spans_end(&f->spans, point, note);
    while (status == KPT_OK && frame != begin) {
        frame = kpti_spans_pop(&f->spans, point->thread);
        status = f->ops->close(f->writer, point->thread, point->start_ns, NULL);
    }
    if (begin) kpti_spans_written(&f->spans, begin);
    return status;
}

/* Closes the spans that were never ended. */
kpt_status kpti_frames_end(kpti_frames *f)
{
    kpt_status status = KPT_OK;
    uint32_t begin;
    for (uint32_t i = 0; f->spans.frames && i < f->spans.track_capacity; i++)
        while (status == KPT_OK && (begin = kpti_spans_pop(&f->spans, i)))
            status = close_span(f, i, f->writer->last_ns, begin, 1);
    return status;
}
