/* nested_frames.h: calls and spans, in the order of time, as frames that open and close and nest strictly;
 * for formats that have nothing but frames, or little else. Marks and counters are the format's own;
 * which spans are loose `spans` tells in the end. Only writers use this. */
#ifndef KPTI_WRITERS_FORMAT_NESTED_FRAMES_H
#define KPTI_WRITERS_FORMAT_NESTED_FRAMES_H

#include "writers/format/note_spans.h"

typedef struct kpti_frame_ops {
    /* The call AT opens, or the span SPAN where it is not NULL, whose point AT is. */
    kpt_status (*open)(kpti_writer *writer, const kpt_activity *at, const kpti_note *span);
    /* CALL closes, or a span where it is NULL. */
    kpt_status (*close)(kpti_writer *writer, uint32_t thread, int64_t ns, const kpt_activity *call);
} kpti_frame_ops;

typedef struct kpti_frames {
    const kpti_frame_ops *ops;
    kpti_writer *writer;
    kpti_spans spans;
} kpti_frames;

kpt_status kpti_frames_init(kpti_frames *frames, const kpti_frame_ops *ops, kpti_writer *writer);
void kpti_frames_free(kpti_frames *frames);

/* What a format's call, point and end are to do. */
kpt_status kpti_frames_call(kpti_frames *frames, const kpt_activity *call);
kpt_status kpti_frames_point(kpti_frames *frames, const kpt_activity *point, const kpti_note *note);
kpt_status kpti_frames_end(kpti_frames *frames);

#endif
