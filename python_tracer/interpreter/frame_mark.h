/* frame_mark.h: marks on running frames, by which a thread recognises a frame; its address alone may belong
 * to another call. For a mark, a frame object is made for the frame, as the interpreter makes one on
 * request, and f_trace_lines of the object is stamped. That field is true with any value but 0. The frame
 * object of another call has no stamp. Used on releases whose layouts of frames and frame objects are known
 * (struct_layouts.h).
 *
 * The frames below a marked frame are unchanged since the mark was set, since they can't have continued.
 * This is not so for generators, which resume from elsewhere, so they get no mark. Nor is it so if a trace
 * function moves frames to other lines; no mark is valid then. */
#ifndef KPTI_PYTHON_TRACER_INTERPRETER_FRAME_MARK_H
#define KPTI_PYTHON_TRACER_INTERPRETER_FRAME_MARK_H

#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/frame_structs.h"

/* Reserves a stamp of our own, since there may be several copies of the backend in the process. The caller
 * holds the GIL. Leaves a pending exception alone. */
void kpti_frame_mark_prepare(void);

enum { KPTI_MAX_MARKS = 64 };

/* The marks that a thread has set, outermost first. */
typedef struct kpti_frame_marks {
    uint32_t count;
    struct kpti_frame_mark {
        const void *frame;
        const PyFrameObject *object; /* borrowed from the frame while it runs */
        uint32_t level;              /* level of the frame */
    } marks[KPTI_MAX_MARKS];
} kpti_frame_marks;

/* Returns the level of the innermost mark, or 0 if there is none. */
static inline uint32_t kpti_frame_marks_last(const kpti_frame_marks *m)
{
    return m->count ? m->marks[m->count - 1].level : 0;
}

/* Removes the marks of levels above MAX. */
static inline void kpti_frame_marks_trim(kpti_frame_marks *m, uint32_t max)
{
    while (kpti_frame_marks_last(m) > max)
        m->count--;
}

#if KPTI_KNOWN_FRAMES
/* Whether FRAME, of the calling thread, is marked. If so, its mark becomes the last one, and *LEVEL
 * receives its level. If the marks above it were not found before, their frames have ended. */
int kpti_frame_marks_find(kpti_frame_marks *m, const kpti_raw_frame *frame, uint32_t *level);

/* Marks FRAME, of the calling thread, which is at LEVEL, above the last mark, if possible. The caller holds
 * the GIL. */
void kpti_frame_marks_add(kpti_frame_marks *m, kpti_raw_frame *frame, uint32_t level);
#endif

#endif
