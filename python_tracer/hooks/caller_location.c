#include "python_tracer/hooks/caller_location.h"

#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/frame_structs.h"

static kpti_instruction known_caller(void)
{
    kpti_instruction at = {NULL, 0};
#if KPTI_KNOWN_FRAMES
    kpti_raw_frame *frame = kpti_raw_top(PyThreadState_Get());
    frame = frame ? kpti_raw_below(frame) : NULL;
    if (frame) at = kpti_raw_instruction(frame);
#endif
    return at;
}

kpti_instruction kpti_caller(kpti_thread *thread)
{
    kpti_instruction at = {NULL, 0};
    PyFrameObject *top;
    PyFrameObject *back;
    int entering;
    if (kpti_frames_are_known()) return known_caller();
    entering = kpti_callback_suspend(thread); /* allocating may start a collection */
    top = PyThreadState_GetFrame(PyThreadState_Get());
    back = top ? PyFrame_GetBack(top) : NULL;
    if (back) at = (kpti_instruction){kpti_frame_code(back), kpti_frame_offset(back)};
    if (at.offset < 0) at.code = NULL;
    Py_XDECREF(back); /* a running frame stays alive */
    Py_XDECREF(top);
    kpti_callback_resume(thread, entering);
    return at;
}
