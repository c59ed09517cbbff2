/* frame_mark.h: marks on running frames, by which a thread knows one again: its address alone may be
 * another call's. A frame object is made for the frame, as the interpreter makes one for whoever looks at
 * it, and is stamped in f_trace_lines, which is true with any value but 0; the object of another call is
 * not. On releases whose frames and their objects are known (struct_layouts.h).
 *
 * What lies below a marked frame is as it was when the mark was set: it can't have gone on meanwhile. This
 * does not hold for generators, which go on from elsewhere: they get no mark; nor where a trace function
 * moves frames to other lines: then no mark counts. */
#ifndef KPTI_PYTHON_TRACER_INTERPRETER_FRAME_MARK_H
#define KPTI_PYTHON_TRACER_INTERPRETER_FRAME_MARK_H

#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/frame_structs.h"

/* Finds a stamp of our own: there may be more than one of us in the process. The GIL is held; leaves a
 * pending exception alone. */
void kpti_frame_mark_prepare(void);

enum { KPTI_MOST_MARKS = 64 };

/* The marks that a thread has set, outermost first. */
typedef struct kpti_frame_marks {
    uint32_t count;
    struct kpti_frame_mark {
        const void *frame;
        const PyFrameObject *object; /* borrowed from the frame while that runs */
        uint32_t level;              /* the frame is at */
    } marks[KPTI_MOST_MARKS];
} kpti_frame_marks;

/* The level of the innermost one; 0: there is none. */
static inline uint32_t kpti_frame_marks_last(const kpti_frame_marks *m)
{
    return m->count ? m->marks[m->count - 1].level : 0;
}

/* Takes away those of levels above MOST. */
static inline void kpti_frame_marks_trim(kpti_frame_marks *m, uint32_t most)
{
    while (kpti_frame_marks_last(m) > most)
        m->count--;
}

#if KPTI_KNOWN_FRAMES
/* Whether FRAME, of the calling thread, is one of them; then it is the last one from now on, and LEVEL
 * receives its level. Marks above it are of frames that have ended, if none of them was found before. */
int kpti_frame_marks_find(kpti_frame_marks *m, const kpti_raw_frame *frame, uint32_t *level);

/* Marks FRAME, of the calling thread, which is at LEVEL, above the last one; if it can be. The GIL is held. */
void kpti_frame_marks_add(kpti_frame_marks *m, kpti_raw_frame *frame, uint32_t level);
#endif

#endif
