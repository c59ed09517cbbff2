/* caller.c: the one file that uses CPython's internal headers, on releases whose frames it knows
 * (KPTI_KNOWN_FRAMES). Python's own functions make an object of each frame that they are asked for, which
 * takes longer than all else that is done about a call. */
#include "caller.h"

#if KPTI_KNOWN_FRAMES
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>

/* A pre-release of the same minor, that a backend for the release was opened in, may have others. */
static int frames_are_known(void)
{
    const unsigned long level = Py_Version >> 4 & 0xF;
    return level == PY_RELEASE_LEVEL_FINAL;
}

static kpti_place known_caller(void)
{
    _PyInterpreterFrame *frame = _PyThreadState_GetFrame(PyThreadState_Get());
    kpti_place place = {NULL, 0};
    frame = frame ? _PyFrame_GetFirstComplete(frame->previous) : NULL;
    if (!frame) return place;
    place.code = kpti_raw_frame_code(frame);
    place.offset = (uint32_t)_PyInterpreterFrame_LASTI(frame) * (uint32_t)sizeof(_Py_CODEUNIT);
    return place;
}
#else
static int frames_are_known(void)
{
    return 0;
}

static kpti_place known_caller(void)
{
    return (kpti_place){NULL, 0};
}
#endif

kpti_place kpti_caller(kpti_thread *thread)
{
    kpti_place place = {NULL, 0};
    PyFrameObject *top;
    PyFrameObject *back;
    int entering;
    int offset;
    if (frames_are_known()) return known_caller();
    entering = kpti_thread_step_out(thread); /* making objects may set off a collection */
    top = PyThreadState_GetFrame(PyThreadState_Get());
    back = top ? PyFrame_GetBack(top) : NULL;
    offset = back ? kpti_frame_offset(back) : -1;
    if (offset >= 0) place = (kpti_place){kpti_frame_code(back), (uint32_t)offset};
    Py_XDECREF(back); /* it is running, and so stays */
    Py_XDECREF(top);
    kpti_thread_step_in(thread, entering);
    return place;
}
