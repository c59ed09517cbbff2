#include "thread.h"

#include <pthread.h>

#include "name.h"
#include "platform.h"
#include "session.h"

__thread kpti_thread *kpti_thread_self __attribute__((tls_model("initial-exec")));

static pthread_key_t at_thread_end;

/* Runs when the thread ends, which may be long after Python: it touches none of it. */
static void thread_ended(void *self)
{
    kpti_thread *thread = self;
    kpti_session_remove_thread(thread);
    kpti_thread_self = NULL;
    free(thread->walked);
    free(thread);
}

static void make_key(void)
{
    (void)pthread_key_create(&at_thread_end, thread_ended);
}

/* threading's name of the thread whose outermost frame is FRAME: that is Thread._bootstrap's, and its
 * self is the thread. Before that has run, threading itself does not know the thread. */
static void take_threading_name(kpti_thread *thread, PyFrameObject *frame)
{
    PyCodeObject *code = PyFrame_GetCode(frame);
    int is_bootstrap = PyUnicode_CompareWithASCIIString(code->co_name, "_bootstrap") == 0;
    PyObject *self = is_bootstrap ? kpti_frame_local(frame, "self") : NULL;
    PyObject *name = self ? PyObject_GetAttrString(self, "_name") : NULL;
    thread->named = 1;
    Py_DECREF(code);
    if (name && PyUnicode_Check(name)) kpti_name_text(name, thread->name, sizeof thread->name);
    PyErr_Clear();
    Py_XDECREF(name);
    Py_XDECREF(self);
}

kpti_thread *kpti_thread_get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    kpti_thread *thread = kpti_thread_self;
    if (thread) return thread;
    (void)pthread_once(&once, make_key);
    thread = calloc(1, sizeof *thread);
    if (!thread) return NULL;
    thread->os_tid = kpti_os_tid();
    if (thread->os_tid == (uint64_t)getpid())
        (void)snprintf(thread->name, sizeof thread->name, "MainThread");
    else
        (void)pthread_getname_np(pthread_self(), thread->name, sizeof thread->name);
    if (pthread_setspecific(at_thread_end, thread) != 0) {
        free(thread);
        return NULL;
    }
    kpti_session_add_thread(thread);
    kpti_thread_self = thread;
    return thread;
}

void kpti_thread_forget(kpti_thread *thread)
{
    memset(thread->codes, 0, sizeof thread->codes);
    memset(thread->functions, 0, sizeof thread->functions);
}

/* The name of the module whose variables GLOBALS are; empty if it has none. */
static void module_of(PyObject *globals, char *out, size_t size)
{
    PyObject *name = globals ? PyDict_GetItemString(globals, "__name__") : NULL;
    out[0] = 0;
    if (name && PyUnicode_Check(name)) kpti_name_text(name, out, size);
}

kpti_code_entry *kpti_thread_code_slow(kpti_thread *thread, PyCodeObject *code)
{
    kpti_code_entry *entry = &thread->codes[kpti_code_slot(code)];
    kpti_function_view view = {.kind = KPT_KIND_PYTHON};
    char module[256] = "";
    uint32_t id;
    uint32_t mark;
    /* Naming runs Python's allocator: whoever waits for us must not wait for that. */
    atomic_store_explicit(&thread->busy, 0, memory_order_release);
    id = kpti_name_code(code);
    mark = kpti_name_mark(code);
    (void)kpti_function_describe(NULL, id, &view);
    if (kpti_session_needs_module()) module_of(PyEval_GetGlobals(), module, sizeof module);
    atomic_store_explicit(&thread->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    entry->code = code;
    entry->word = id << KPTI_KIND_BITS;
    entry->mask = kpti_session_mask(id, view.file, kpt_str_of(module), mark);
    return entry;
}

static int reserve_walk(kpti_thread *thread, uint32_t frames)
{
    uint32_t wanted = thread->walked_capacity ? thread->walked_capacity : 64;
    uint32_t *grown;
    while (wanted < frames)
        wanted *= 2;
    if (wanted == thread->walked_capacity) return 1;
    grown = realloc(thread->walked, 3 * (size_t)wanted * sizeof *grown);
    if (!grown) return 0;
    thread->walked = grown;
    thread->walked_capacity = wanted;
    return 1;
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

/* The tracers that record the code of FRAME, whose id is FUNCTION. */
static uint32_t mask_of_frame(PyFrameObject *frame, uint32_t function)
{
    kpti_function_view view = {.kind = KPT_KIND_PYTHON};
    char module[256] = "";
    (void)kpti_function_describe(NULL, function, &view);
    if (kpti_session_needs_module()) {
        PyObject *globals = kpti_frame_globals(frame);
        module_of(globals, module, sizeof module);
        Py_XDECREF(globals);
    }
    return kpti_session_mask(function, view.file, kpt_str_of(module), 0);
}

/* Fills functions, lines and masks from the innermost, at the end, to the outermost, which is
 * returned. */
static PyFrameObject *fill_walk(kpti_thread *thread, PyFrameObject *top, uint32_t count)
{
    PyFrameObject *frame = top;
    Py_XINCREF(frame);
    for (uint32_t i = count; i > 0 && frame; i--) {
        PyCodeObject *code = PyFrame_GetCode(frame);
        PyFrameObject *back = PyFrame_GetBack(frame);
        int line = PyFrame_GetLineNumber(frame);
        uint32_t function = kpti_name_code(code);
        thread->walked[i - 1] = function;
        thread->walked[thread->walked_capacity + i - 1] = line > 0 ? (uint32_t)line : 0;
        thread->walked[2 * (size_t)thread->walked_capacity + i - 1] =
            mask_of_frame(frame, function);
        Py_DECREF(code);
        if (!back) return frame;
        Py_DECREF(frame);
        frame = back;
    }
    return frame;
}

/* The walk of all frames from TOP; the outermost goes to OUTERMOST, a new reference or NULL. */
static kpti_open_stack walk(kpti_thread *thread, PyFrameObject *top, PyFrameObject **outermost)
{
    kpti_open_stack open = {.count = count_frames(top)};
    *outermost = NULL;
    if (open.count == 0 || !reserve_walk(thread, open.count)) return (kpti_open_stack){0};
    *outermost = fill_walk(thread, top, open.count);
    open.functions = thread->walked;
    open.lines = thread->walked + thread->walked_capacity;
    open.masks = open.lines + thread->walked_capacity;
    return open;
}

kpti_open_stack kpti_thread_walk_from(kpti_thread *scratch, PyFrameObject *top)
{
    PyFrameObject *outermost;
    kpti_open_stack open = walk(scratch, top, &outermost);
    Py_XDECREF(outermost);
    return open;
}

kpti_open_stack kpti_thread_walk(kpti_thread *thread, int entering)
{
    kpti_open_stack open;
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
    PyFrameObject *top;
    PyFrameObject *below;
    PyFrameObject *outermost;
    PyErr_Fetch(&type, &value, &traceback);
    top = PyThreadState_GetFrame(PyThreadState_Get());
    below = top && entering ? PyFrame_GetBack(top) : top;
    open = walk(thread, below, &outermost);
    if (!thread->named && (outermost || top))
        take_threading_name(thread, outermost ? outermost : top);
    Py_XDECREF(outermost);
    if (below != top) Py_XDECREF(below);
    Py_XDECREF(top);
    PyErr_Restore(type, value, traceback);
    return open;
}
