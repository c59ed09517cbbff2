#include "frame_mark.h"

#if KPTI_KNOWN_FRAMES
enum { PLAIN = 1, FIRST_STAMP = 2, LAST_STAMP = 127 };

char kpti_frame_stamp;

/* The interpreter's dictionary has the stamps that were taken. */
static long take_stamp(PyObject *taken)
{
    static const char key[] = "kpytrace.frame_stamps";
    PyObject *before = taken ? PyDict_GetItemString(taken, key) : NULL; /* borrowed */
    const long stamp = before ? PyLong_AsLong(before) + 1 : FIRST_STAMP;
    PyObject *now = taken && stamp <= LAST_STAMP ? PyLong_FromLong(stamp) : NULL;
    const int kept = now && PyDict_SetItemString(taken, key, now) == 0;
    Py_XDECREF(now);
    return kept && stamp >= FIRST_STAMP ? stamp : 0;
}

void kpti_frame_mark_prepare(void)
{
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
    if (!kpti_frames_are_known()) return;
    PyErr_Fetch(&type, &value, &traceback);
    kpti_frame_stamp = (char)take_stamp(PyInterpreterState_GetDict(PyInterpreterState_Main()));
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

/* The object of a frame, borrowed from it, made if need be. Only Python's functions make one, and only for
 * the frame below another: so one is put above it, for as long as that takes. */
static PyFrameObject *object_of(kpti_raw_frame *frame)
{
    kpti_raw_frame above;
    PyFrameObject fake;
    PyFrameObject *object;
    int collects;
    if (frame->frame_obj) return frame->frame_obj;
    memset(&above, 0, sizeof above);
    above.previous = frame;
    above.owner = FRAME_OWNED_BY_GENERATOR; /* never taken for one that has not begun */
    memset(&fake, 0, sizeof fake);
    fake.f_frame = &above;
    collects = PyGC_Disable(); /* 3.11 would run one where the object is made */
    object = PyFrame_GetBack(&fake);
    if (collects) (void)PyGC_Enable();
    Py_XDECREF(object);
    return object;
}

PyFrameObject *kpti_frame_mark(kpti_raw_frame *frame)
{
    PyFrameObject *object;
    if (!kpti_frame_stamp || frame->owner != FRAME_OWNED_BY_THREAD) return NULL;
    object = object_of(frame);
    if (!object || frame->frame_obj != object) return NULL;
    if (object->f_trace_lines == PLAIN) object->f_trace_lines = kpti_frame_stamp;
    return kpti_frame_has_mark(frame, object) ? object : NULL;
}
#else
void kpti_frame_mark_prepare(void) {}
#endif
