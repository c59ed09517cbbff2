#include "python_tracer/interpreter/frame_mark.h"

#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/frame_structs.h"
#include "python_tracer/interpreter/pending_exception.h"
#include "python_tracer/interpreter/struct_layouts.h"

#if KPTI_KNOWN_FRAMES
enum { PLAIN = 1, FIRST_STAMP = 2, LAST_STAMP = 127 };

static char own_stamp; /* 0: none */

/* Reserves the next free stamp. The interpreter's dictionary holds the last stamp that was reserved. */
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
    kpti_pending_exception pending;
    if (!(kpti_layouts & KPT_LAYOUT_FRAME_OBJECTS)) return;
    pending = kpti_exception_save();
    own_stamp = (char)take_stamp(PyInterpreterState_GetDict(PyInterpreterState_Main()));
    kpti_exception_restore(pending);
}

/* Returns the frame object of a frame, borrowed from the frame, making the object if needed. Only Python's
 * functions make one, and only for the frame below another. So a fake frame is linked above it for the
 * call. */
static PyFrameObject *object_of(kpti_raw_frame *frame)
{
    kpti_raw_frame above;
    PyFrameObject fake;
    PyFrameObject *object;
    kpti_pending_exception pending;
    int collects;
    if (frame->frame_obj) return frame->frame_obj;
    memset(&above, 0, sizeof above);
    above.previous = frame;
    above.owner = FRAME_OWNED_BY_GENERATOR; /* never considered as not begun */
    memset(&fake, 0, sizeof fake);
    fake.f_frame = &above;
    pending = kpti_exception_save();
    collects = PyGC_Disable(); /* 3.11 would run a collection when it makes the object */
    object = PyFrame_GetBack(&fake);
    if (collects) (void)PyGC_Enable();
    kpti_exception_restore(pending);
    Py_XDECREF(object);
    return object;
}

static int has_mark(const kpti_raw_frame *frame, const PyFrameObject *mark)
{
    return frame->frame_obj == mark && mark->f_trace_lines == own_stamp;
}

int kpti_frame_marks_find(kpti_frame_marks *m, const kpti_raw_frame *frame, uint32_t *level)
{
    for (uint32_t i = m->count; i > 0; i--) {
        const struct kpti_frame_mark *mark = &m->marks[i - 1];
        if (mark->frame != frame || !has_mark(frame, mark->object)) continue;
        m->count = i;
        *level = mark->level;
        return 1;
    }
    return 0;
}

/* Removes every second mark, but not the innermost. So marks become sparser towards the outermost frame. */
static void thin_out(kpti_frame_marks *m)
{
    for (uint32_t i = 0; i < KPTI_MAX_MARKS / 2; i++)
        m->marks[i] = m->marks[i * 2 + 1];
    m->count = KPTI_MAX_MARKS / 2;
}

void kpti_frame_marks_add(kpti_frame_marks *m, kpti_raw_frame *frame, uint32_t level)
{
    PyFrameObject *object;
    if (!own_stamp || frame->owner != FRAME_OWNED_BY_THREAD) return;
    object = object_of(frame);
    if (!object || frame->frame_obj != object) return;
    if (object->f_trace_lines == PLAIN) object->f_trace_lines = own_stamp;
    if (m->count == KPTI_MAX_MARKS) thin_out(m);
    if (has_mark(frame, object))
        m->marks[m->count++] = (struct kpti_frame_mark){frame, object, level};
}
#else
void kpti_frame_mark_prepare(void) {}
#endif
