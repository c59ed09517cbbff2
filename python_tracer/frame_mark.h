/* frame_mark.h: marks on running frames, by which a thread knows one again: its address alone may be
 * another call's. A frame object is made for the frame, as the interpreter makes one for whoever looks at
 * it, and is stamped in f_trace_lines, which is true with any value but 0; the object of another call is
 * not. On releases whose frames are known.
 *
 * What lies below a marked frame is as it was when the mark was set: it can't have gone on meanwhile. This
 * does not hold for generators, which go on from elsewhere: they get no mark. */
#ifndef KPTI_FRAME_MARK_H
#define KPTI_FRAME_MARK_H

#include "raw_frame.h"

/* Finds a stamp of our own: there may be more than one of us in the process. The GIL is held; leaves a
 * pending exception alone. */
void kpti_frame_mark_prepare(void);

#if KPTI_KNOWN_FRAMES
/* Marks a frame of the calling thread: the mark, which is borrowed from the frame; NULL: it gets none. The
 * GIL is held. No collection runs: the caller may be in the middle of anything, such as an allocation. */
PyFrameObject *kpti_frame_mark(kpti_raw_frame *frame);

extern char kpti_frame_stamp __attribute__((visibility("hidden"))); /* 0: there is none */

static inline int kpti_frame_has_mark(const kpti_raw_frame *frame, const PyFrameObject *mark)
{
    return frame->frame_obj == mark && mark->f_trace_lines == kpti_frame_stamp;
}
#endif

#endif
