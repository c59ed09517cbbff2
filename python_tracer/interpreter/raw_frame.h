/* raw_frame.h: the interpreter's frames as they lie in memory, on releases that are known
 * (KPTI_KNOWN_FRAMES), where struct_layouts.h says so. Python's own functions make an
 * object of each frame that they are asked for, which takes longer than all else that is done about it,
 * and needs the GIL. A thread may read its own frames without: nobody else changes them. */
#ifndef KPTI_PYTHON_TRACER_INTERPRETER_RAW_FRAME_H
#define KPTI_PYTHON_TRACER_INTERPRETER_RAW_FRAME_H

#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/frame_structs.h"
#include "python_tracer/interpreter/struct_layouts.h"

/* An instruction of a frame. */
typedef struct kpti_instruction {
    PyCodeObject *code; /* borrowed from the frame; NULL: there is none */
    int32_t offset;     /* in bytes; negative: it has not begun */
} kpti_instruction;

/* Through C: an eager task begins like this as well, within the coroutine that makes it. */
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

/* Where C enters the interpreter there is a frame that is nobody's. */
static inline int kpti_raw_is_entry(const kpti_raw_frame *frame)
{
    return frame->owner > FRAME_OWNED_BY_FRAME_OBJECT;
}

/* The instruction that a frame is at: it lies within its code object. */
static inline const void *kpti_raw_ip(const kpti_raw_frame *frame)
{
    return frame->kpti_raw_frame_ip;
}

/* FRAME, or the first one below it that has begun. */
static inline kpti_raw_frame *kpti_raw_complete(kpti_raw_frame *frame)
{
    while (frame && _PyFrame_IsIncomplete(frame))
        frame = frame->previous;
    return frame;
}

/* The frame on top of a thread: its own, or the GIL is held. */
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

/* Whether a generator or coroutine waits for the frame on top, which is complete. */
static inline kpti_awaited kpti_raw_awaited(PyThreadState *state)
{
    const kpti_raw_frame *frame = kpti_state_frame(state)->previous;
    if (!frame || frame->owner == FRAME_OWNED_BY_THREAD) return KPTI_NOT_AWAITED;
    if (frame->owner == FRAME_OWNED_BY_GENERATOR) return KPTI_AWAITED;
    frame = kpti_raw_complete(frame->previous); /* it was resumed through C */
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

/* The task of asyncio's that runs on a thread, the calling one, borrowed; NULL: none does. 0: this is not known. */
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
