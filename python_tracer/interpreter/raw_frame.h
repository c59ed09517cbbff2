/* raw_frame.h: reads the interpreter's frames directly in memory, on releases with a known layout
 * (KPTI_KNOWN_FRAMES), if kpti_layouts allows it (struct_layouts.h). Python's own functions make an object
 * for each frame, which takes longer than all other work on the frame, and needs the GIL. A thread may read
 * its own frames without the GIL, since no other thread changes them. */
#ifndef KPTI_PYTHON_TRACER_INTERPRETER_RAW_FRAME_H
#define KPTI_PYTHON_TRACER_INTERPRETER_RAW_FRAME_H

#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/frame_structs.h"
#include "python_tracer/interpreter/struct_layouts.h"

/* An instruction of a frame. */
typedef struct kpti_instruction {
    PyCodeObject *code; /* borrowed from the frame; NULL: none */
    int32_t offset;     /* in bytes; negative: the frame has not begun */
} kpti_instruction;

/* THROUGH_C: an eager task also begins like this, within the coroutine that makes it. */
typedef enum kpti_awaited {
    KPTI_NOT_AWAITED = 0,
    KPTI_AWAITED = 1,
    KPTI_AWAITED_THROUGH_C = 2
} kpti_awaited;

#if KPTI_KNOWN_FRAMES
static inline int kpti_frames_are_known(void)
{
    return (kpti_layouts & KPT_LAYOUT_FRAMES) != 0;
}

/* Where C code enters the interpreter, there is an entry frame that belongs to no function. */
static inline int kpti_raw_is_entry(const kpti_raw_frame *frame)
{
    return frame->owner > FRAME_OWNED_BY_FRAME_OBJECT;
}

/* Returns the address of a frame's instruction, which is inside its code object. */
static inline const void *kpti_raw_ip(const kpti_raw_frame *frame)
{
    return frame->kpti_raw_frame_ip;
}

/* Returns FRAME, or the first frame below it that has begun. */
static inline kpti_raw_frame *kpti_raw_complete(kpti_raw_frame *frame)
{
    while (frame && _PyFrame_IsIncomplete(frame))
        frame = frame->previous;
    return frame;
}

/* Returns the top frame of a thread. STATE is the calling thread's, or the caller holds the GIL. */
static inline kpti_raw_frame *kpti_raw_top(PyThreadState *state)
{
    return kpti_raw_complete(kpti_state_frame(state));
}

static inline kpti_raw_frame *kpti_raw_below(const kpti_raw_frame *frame)
{
    return kpti_raw_complete(frame->previous);
}

static inline kpti_instruction kpti_raw_instruction(kpti_raw_frame *frame)
{
    kpti_instruction at;
    at.code = kpti_raw_frame_code(frame);
    at.offset = _PyInterpreterFrame_LASTI(frame) * (int32_t)sizeof(_Py_CODEUNIT);
    return at;
}

/* Whether a generator or coroutine awaits the frame on top, which is complete. */
static inline kpti_awaited kpti_raw_awaited(PyThreadState *state)
{
    const kpti_raw_frame *frame = kpti_state_frame(state)->previous;
    if (!frame || frame->owner == FRAME_OWNED_BY_THREAD) return KPTI_NOT_AWAITED;
    if (frame->owner == FRAME_OWNED_BY_GENERATOR) return KPTI_AWAITED;
    frame = kpti_raw_complete(frame->previous); /* resumed through C */
    return frame && frame->owner == FRAME_OWNED_BY_GENERATOR ? KPTI_AWAITED_THROUGH_C
                                                             : KPTI_NOT_AWAITED;
}
#else
static inline int kpti_frames_are_known(void)
{
    return 0;
}

static inline kpti_awaited kpti_raw_awaited(PyThreadState *state)
{
    (void)state;
    return KPTI_NOT_AWAITED;
}
#endif

/* Reads asyncio's running task on the calling thread into *TASK, borrowed, or NULL if there is none.
 * Returns 0 if the layout is unknown. */
static inline int kpti_raw_running_task(PyThreadState *state, PyObject **task)
{
#if KPTI_TASK_IN_STATE
    if (!(kpti_layouts & KPT_LAYOUT_TASKS)) return 0;
    *task = ((_PyThreadStateImpl *)state)->asyncio_running_task;
    return 1;
#else
    (void)state;
    (void)task;
    return 0;
#endif
}

#endif
