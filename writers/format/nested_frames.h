/* nested_frames.h: calls and spans, in time order, as frames that open and close and nest strictly. It is for
 * formats that have only frames, or little else. The format writes marks and counters itself. After the end,
 * `spans` lists the loose spans. Only writers use this. */
#ifndef KPTI_WRITERS_FORMAT_NESTED_FRAMES_H
#define KPTI_WRITERS_FORMAT_NESTED_FRAMES_H

#include "writers/format/note_spans.h"

typedef struct kpti_frame_ops {
    /* Opens the call AT, or the span SPAN if it is not NULL; AT is then the span's point. */
    kpt_status (*open)(kpti_writer *writer, const kpt_activity *at, const kpti_note *span);
    /* Closes CALL, or a span if CALL is NULL. */
    kpt_status (*close)(kpti_writer *writer, uint32_t thread, int64_t ns, const kpt_activity *call);
} kpti_frame_ops;

typedef struct kpti_frames {
    const kpti_frame_ops *ops;
    kpti_writer *writer;
    kpti_spans spans;
} kpti_frames;

kpt_status kpti_frames_init(kpti_frames *frames, const kpti_frame_ops *ops, kpti_writer *writer);
void kpti_frames_free(kpti_frames *frames);

/* A format's call, point and end functions call these. */
kpt_status kpti_frames_call(kpti_frames *frames, const kpt_activity *call);
kpt_status kpti_frames_point(kpti_frames *frames, const kpt_activity *point, const kpti_note *note);
kpt_status kpti_frames_end(kpti_frames *frames);

#endif
