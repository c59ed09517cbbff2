#include "frames.h"

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

kpt_status kpti_frames_call(kpti_frames *f, const kpt_activity *call)
{
    kpt_status status = KPT_OK;
    if (call->phase == KPT_PHASE_BEGIN)
        return f->ops->open(f->writer, call->thread, call->name, NULL, call->start_ns);
    while (status == KPT_OK && kpti_spans_pop_of_call(&f->spans, call))
        status = f->ops->close(f->writer, call->thread, call->end_ns);
    if (status == KPT_OK) status = f->ops->close(f->writer, call->thread, call->end_ns);
    while (status == KPT_OK && kpti_spans_pop_after_call(&f->spans, call))
        status = f->ops->close(f->writer, call->thread, call->end_ns);
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
        return f->ops->open(f->writer, point->thread, 0, note, point->start_ns);
    }
    if (note->what == KPTI_NOTE_END) begin = kpti_spans_end(&f->spans, point, note);
    while (status == KPT_OK && frame != begin) {
        frame = kpti_spans_pop(&f->spans, point->thread);
        status = f->ops->close(f->writer, point->thread, point->start_ns);
    }
    return status;
}

/* Spans that nobody ended. */
kpt_status kpti_frames_end(kpti_frames *f)
{
    kpt_status status = KPT_OK;
    for (uint32_t i = 0; f->spans.frames && i < f->spans.lane_capacity; i++)
        while (status == KPT_OK && kpti_spans_pop(&f->spans, i))
            status = f->ops->close(f->writer, i, f->writer->last_ns);
    return status;
}
