/* frames.h: calls and spans, in the order of time, as frames that open and close and nest strictly;
 * for formats that have nothing but frames. Marks, counters and loose spans are not theirs. Only
 * writers use this. */
#ifndef KPTI_FRAMES_H
#define KPTI_FRAMES_H

#include "spans.h"

typedef struct kpti_frame_ops {
    /* A call of function NAME opens, or the span SPAN where it is not NULL. */
    kpt_status (*open)(kpti_writer *writer, uint32_t thread, uint32_t name, const kpti_note *span,
                       int64_t ns);
    kpt_status (*close)(kpti_writer *writer, uint32_t thread, int64_t ns);
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
