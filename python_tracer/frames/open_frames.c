#include "python_tracer/frames/open_frames.h"

#include "python_tracer/frames/function_naming.h"
#include "python_tracer/frames/host_watch.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/pending_exception.h"
#include "python_tracer/interpreter/py_string.h"
#include "python_tracer/state/active_tracers.h"
#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/thread_state.h"

static _Atomic uint64_t walks;

uint64_t kpti_open_frames_walks(void)
{
    return atomic_load_explicit(&walks, memory_order_relaxed);
}

/* Reads threading's name of the thread whose outermost frame is FRAME. That frame belongs to
 * Thread._bootstrap, and its self is the Thread. Before _bootstrap has run, threading does not know the
 * thread. */
static void take_threading_name(kpti_thread *thread, PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    int is_bootstrap = PyUnicode_CompareWithASCIIString(code->co_name, "_bootstrap") == 0;
    PyObject *key = is_bootstrap ? PyUnicode_FromString("self") : NULL;
    PyObject *self = key ? kpti_frame_local(frame, key) : NULL;
    PyObject *name = self ? PyObject_GetAttrString(self, "_name") : NULL;
    thread->named = 1;
    Py_DECREF(code);
    if (name && PyUnicode_Check(name)) kpti_py_string_copy(name, thread->name, sizeof thread->name);
    PyErr_Clear();
    Py_XDECREF(name);
    Py_XDECREF(self);
    Py_XDECREF(key);
}

static uint32_t count_frames(PyFrameObject *top)
{
    uint32_t count = 0;
    PyFrameObject *frame = top;
    Py_XINCREF(frame);
    while (frame) {
        PyFrameObject *back = PyFrame_GetBack(frame);
        Py_DECREF(frame);
        frame = back;
        count++;
    }
    return count;
}

/* Returns the mask of tracers that record the code of FRAME, whose id is FUNCTION. */
static uint32_t mask_of_frame(PyFrameObject *frame, uint32_t function)
{
    kpti_function_view view = {.kind = KPT_KIND_PYTHON};
    char module[256] = "";
    (void)kpti_function_describe(NULL, function, &view);
    if (kpti_tracers_needs_module()) {
        PyObject *globals = kpti_frame_globals(frame);
        kpti_name_module(globals, module, sizeof module);
        Py_XDECREF(globals);
    }
    return kpti_tracers_mask(function, view.file, kpt_str_of(module), 0, 0);
}

/* Notifies the hosts of the tracers in ASK that watch the code with MARK, whose call is at INDEX. */
static void ask_hosts(kpti_open_stack *open, PyFrameObject *frame, uint32_t mark, uint32_t index,
                      uint32_t ask)
{
    for (int i = 0; i < KPTI_MAX_TRACERS; i++) {
        kpti_open_answer a = {.index = index, .bit = UINT32_C(1) << i};
        kpti_open_answer *grown;
        if (!(ask & a.bit) || !kpti_watch_open(frame, mark, i, &a)) continue;
        grown = realloc(open->answers, (open->answer_count + 1) * sizeof *grown);
        if (!grown) continue;
        open->answers = grown;
        open->answers[open->answer_count++] = a;
    }
}

/* Fills functions, lines and masks, COUNT each, from the innermost frame at the end to the outermost.
 * Returns the outermost frame, a new reference. *LEFT receives the number of unused slots at the beginning:
 * frames of another thread may have ended since they were counted. */
static PyFrameObject *fill(kpti_open_stack *open, PyFrameObject *top, uint32_t count, uint32_t ask,
                           uint32_t *left)
{
    uint32_t *functions = open->memory;
    uint32_t *lines = functions + count;
    uint32_t *masks = lines + count;
    PyFrameObject *frame = top;
    uint32_t i = count;
    Py_INCREF(frame);
    for (;;) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        PyFrameObject *back = PyFrame_GetBack(frame);
        int line = PyFrame_GetLineNumber(frame);
        i--;
        functions[i] = kpti_name_code(code);
        lines[i] = line > 0 ? (uint32_t)line : 0;
        masks[i] = mask_of_frame(frame, functions[i]);
        if (masks[i] & ask && kpti_name_mark(code))
            ask_hosts(open, frame, kpti_name_mark(code), i, masks[i] & ask);
        Py_DECREF(code);
        if (!back || i == 0) {
            Py_XDECREF(back);
            *left = i;
            return frame;
        }
        Py_DECREF(frame);
        frame = back;
    }
}

/* Walks all frames from TOP. *OUTERMOST receives the outermost one, a new reference, or NULL. */
static kpti_open_stack walk(PyFrameObject *top, uint32_t ask, PyFrameObject **outermost)
{
    const uint32_t count = count_frames(top);
    kpti_open_stack open = {0};
    uint32_t left;
    atomic_fetch_add_explicit(&walks, 1, memory_order_relaxed);
    *outermost = NULL;
    open.memory = count ? malloc(3 * (size_t)count * sizeof *open.memory) : NULL;
    if (!open.memory) return open;
    *outermost = fill(&open, top, count, ask, &left);
    open.functions = open.memory + left;
    open.lines = open.functions + count;
    open.masks = open.lines + count;
    open.count = count - left;
    return open;
}

kpti_open_stack kpti_open_frames_from(PyFrameObject *top, uint32_t ask)
{
    PyFrameObject *outermost;
    kpti_open_stack open = walk(top, ask, &outermost);
    Py_XDECREF(outermost);
    return open;
}

kpti_open_stack kpti_open_frames_own(kpti_thread *thread, int entering, uint32_t ask)
{
    kpti_open_stack open;
    kpti_pending_exception pending;
    PyFrameObject *top;
    PyFrameObject *below;
    PyFrameObject *outermost;
    pending = kpti_exception_save();
    top = PyThreadState_GetFrame(PyThreadState_Get());
    below = top && entering ? PyFrame_GetBack(top) : top;
    open = walk(below, ask, &outermost);
    if (!thread->named && (outermost || top))
        take_threading_name(thread, outermost ? outermost : top);
    Py_XDECREF(outermost);
    if (below != top) Py_XDECREF(below);
    Py_XDECREF(top);
    kpti_exception_restore(pending);
    return open;
}

void kpti_open_frames_free(kpti_open_stack open)
{
    free(open.answers);
    free(open.memory);
}
