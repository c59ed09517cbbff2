#include "python_tracer/frames/name_running_code.h"

#if KPTI_NAMED_CODES
#include <stdatomic.h>

#include "python_tracer/frames/function_naming.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/frame_structs.h"
#include "python_tracer/interpreter/raw_frame.h"

static atomic_flag is_asked = ATOMIC_FLAG_INIT;

/* Names FRAME and those below it. The thread of FRAME waits for the GIL or does not run Python. */
static void name_frames(kpti_raw_frame *frame)
{
    for (frame = kpti_raw_complete(frame); frame; frame = kpti_raw_below(frame)) {
        PyCodeObject *code = kpti_raw_frame_code(frame);
        const uint32_t function = kpti_name_code(code);
        if (kpti_name_is_kept(code)) kpti_named_add(function, code);
    }
}

static void name_all_threads(void)
{
    PyObject *frames = _PyThread_CurrentFrames();
    PyObject *thread;
    PyObject *frame;
    Py_ssize_t at = 0;
    while (frames && PyDict_Next(frames, &at, &thread, &frame))
        name_frames(((PyFrameObject *)frame)->f_frame);
    Py_XDECREF(frames);
    PyErr_Clear();
}

/* A pending call, which Python runs on the main thread with the GIL. If there are several interpreters,
 * only this thread's frames are named: the code objects of another interpreter have other slots, and
 * _PyThread_CurrentFrames does not report the interpreter of a frame. */
static int name_running(void *unused)
{
    (void)unused;
    atomic_flag_clear(&is_asked);
    if (!kpti_may_touch_python()) return 0;
    if (PyInterpreterState_Next(PyInterpreterState_Head()))
        name_frames(kpti_raw_top(kpti_attached()));
    else
        name_all_threads();
    return 0;
}

void kpti_named_ask(void)
{
    if (atomic_flag_test_and_set(&is_asked)) return;
    if (Py_AddPendingCall(name_running, NULL) != 0) atomic_flag_clear(&is_asked);
}
#endif
