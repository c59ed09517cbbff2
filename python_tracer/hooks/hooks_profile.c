/* hooks_profile.c: the hooks on PyEval_SetProfile, CPython 3.10 and 3.11. Each thread has its own profile
 * function. It is set on all existing threads and, through threading's profile hook, on threads that
 * threading starts later. Threads that _thread or C code start while we record can't be reached; they are
 * counted.
 *
 * When the hooks are removed, each thread gets its previous profile function back. */
#include "python_tracer/hooks/hooks.h"

#include "python_tracer/hooks/record_event.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/pending_exception.h"
#include "python_tracer/interpreter/py_import.h"

static int installed;
static PyObject *thread_hook;   /* our callable, which threading calls in a new thread */
static PyObject *previous_hook; /* threading's hook before ours */
static uint64_t first_id; /* thread states with this id or a larger one are newer than the hooks */
static uint64_t reached;  /* number of new thread states that have our hook */

/* A profile function that ours replaced. */
typedef struct displaced {
    uint64_t tstate_id;
    Py_tracefunc function;
    PyObject *object; /* owned */
    struct displaced *next;
} displaced;
static displaced *displaced_list; /* guarded by the GIL */

static KPTI_ALWAYS_INLINE int python_event(PyFrameObject *frame, uint32_t kind)
{
    PyCodeObject *code = kpti_frame_code(frame);
    if (!kpti_fast_code(code, kind)) (void)kpti_slow_code(code, kind);
    return 0;
}

/* The interpreter reports a generator's first call like a resume. Its line is the first line, so no LINE
 * event is recorded for it. */
static KPTI_ALWAYS_INLINE int python_enters(PyFrameObject *frame)
{
    PyCodeObject *code = kpti_frame_code(frame);
    int offset;
    if (__builtin_expect(!(code->co_flags & KPTI_CAN_RESUME), 1))
        return python_event(frame, KPTI_EVENT_ENTER);
    offset = kpti_frame_offset(frame);
    if (offset < 0) return python_event(frame, KPTI_EVENT_ENTER);
    if (!kpti_fast_resume(code, (uint32_t)offset)) (void)kpti_slow_resume(code, (uint32_t)offset);
    return 0;
}

static KPTI_ALWAYS_INLINE int c_event(PyFrameObject *frame, PyObject *callable, uint32_t kind)
{
    if (__builtin_expect(callable && Py_TYPE(callable) == &PyCFunction_Type, 1) &&
        kpti_fast_c(kpti_builtin(callable), NULL, kind))
        return 0;
    if (callable)
        (void)kpti_slow_call(kpti_frame_code(frame), (uint32_t)kpti_frame_offset(frame), callable,
                             NULL, kind);
    return 0;
}

/* The interpreter calls a profile function only for calls and returns of Python and C functions. */
static int on_event(PyObject *object, PyFrameObject *frame, int what, PyObject *arg)
{
    (void)object;
    if (what >= PyTrace_C_CALL)
        return c_event(frame, arg, what == PyTrace_C_CALL ? KPTI_EVENT_ENTER : KPTI_EVENT_EXIT);
    return what == PyTrace_CALL ? python_enters(frame) : python_event(frame, KPTI_EVENT_EXIT);
}

/* Remembers a thread's profile function before ours replaces it. */
static void keep(PyThreadState *tstate)
{
    displaced *d;
    if (!tstate->c_profilefunc || tstate->c_profilefunc == on_event) return;
    d = malloc(sizeof *d);
    if (!d) return;
    d->tstate_id = tstate->id;
    d->function = tstate->c_profilefunc;
    d->object = tstate->c_profileobj;
    Py_XINCREF(d->object);
    d->next = displaced_list;
    displaced_list = d;
}

/* Removes the thread's previous profile function from the list and returns it, or NULL if it had none. */
static displaced *take_kept(const PyThreadState *tstate)
{
    for (displaced **link = &displaced_list; *link; link = &(*link)->next) {
        displaced *d = *link;
        if (d->tstate_id != tstate->id) continue;
        *link = d->next;
        return d;
    }
    return NULL;
}

/* Returns the thread state with the smallest id from FROM on among those older than YOUNGEST, or NULL. */
static PyThreadState *thread_from(uint64_t from, PyThreadState *youngest)
{
    PyThreadState *found = NULL;
    for (PyThreadState *t = PyThreadState_Next(youngest); t; t = PyThreadState_Next(t))
        if (t->id >= from && (!found || t->id < found->id)) found = t;
    return found;
}

/* Visits every thread state. Returns the id of a thread state made now: thread states with larger ids are
 * newer and were not visited. Returns 0, with nothing visited, if there is no memory.
 *
 * 3.11 links a thread state at the head of its list before the fields are set, and needs no GIL for that.
 * So the walk begins at a thread state of our own: those behind it are complete. A visit may run Python
 * (audit hooks), and threads start and end meanwhile. Our thread state stays in the list, and newer ones
 * are before it. */
static uint64_t for_each_thread(void (*visit)(PyThreadState *tstate))
{
    PyThreadState *own = PyThreadState_New(PyInterpreterState_Get());
    PyThreadState *tstate = own ? thread_from(0, own) : NULL;
    uint64_t own_id = own ? own->id : 0;
    while (tstate) {
        uint64_t id = tstate->id;
        visit(tstate);
        tstate = thread_from(id + 1, own);
    }
    if (!own) return 0;
    PyThreadState_Clear(own);
    PyThreadState_Delete(own);
    return own_id;
}

/* Uses _PyEval_SetProfile, since no public function sets another thread's. The caller holds the GIL. */
static void set_one(PyThreadState *tstate)
{
    keep(tstate);
    if (_PyEval_SetProfile(tstate, on_event, NULL) != 0) PyErr_Clear();
}

static void reset_one(PyThreadState *tstate)
{
    displaced *d;
    if (tstate->c_profilefunc != on_event) return; /* replaced by the program: leave it */
    d = take_kept(tstate);
    if (_PyEval_SetProfile(tstate, d ? d->function : NULL, d ? d->object : NULL) != 0)
        PyErr_Clear();
    if (!d) return;
    Py_XDECREF(d->object);
    free(d);
}

/* The profile function that threading sets with sys.setprofile in a thread that it has just started. It
 * replaces itself with the real hook. The call that led here is the first event of the thread. */
static PyObject *on_new_thread(PyObject *self, PyObject *args)
{
    PyObject *frame;
    PyObject *event;
    PyObject *arg;
    (void)self;
    if (!PyArg_ParseTuple(args, "OOO", &frame, &event, &arg)) {
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    PyEval_SetProfile(installed ? on_event : NULL, NULL);
    reached += installed && PyThreadState_Get()->id >= first_id;
    if (installed && PyUnicode_CompareWithASCIIString(event, "call") == 0)
        (void)python_event((PyFrameObject *)frame, KPTI_EVENT_ENTER);
    Py_RETURN_NONE;
}

static PyMethodDef new_thread_method = {"kpytrace_thread_hook", on_new_thread, METH_VARARGS, NULL};

/* Makes threading call HOOK in new threads. *OLD, unless NULL, receives the previous hook. */
static void set_thread_hook(PyObject *hook, PyObject **old)
{
    PyObject *threading = kpti_import("threading");
    if (threading && old) *old = PyObject_GetAttrString(threading, "_profile_hook");
    if (threading && hook) (void)PyObject_SetAttrString(threading, "_profile_hook", hook);
    Py_XDECREF(threading);
    PyErr_Clear();
}

/* Number of threads without our hook when the hooks were last removed. */
static _Atomic uint64_t unreached;

/* Counts a thread older than the hooks whose profile function is no longer ours. */
static void count_lost(PyThreadState *tstate)
{
    unreached += tstate->id < first_id && tstate->c_profilefunc != on_event;
}

/* Thread states newer than the hooks are counted by their ids, so ended threads are included. */
static void count_unreached(void)
{
    uint64_t next;
    unreached = 0;
    next = for_each_thread(count_lost);
    if (next > first_id + reached) unreached += next - first_id - reached;
}

uint64_t kpti_hooks_unreached(void)
{
    return unreached;
}

void kpti_hooks_remove(void)
{
    kpti_pending_exception pending;
    PyObject *previous;
    if (!installed) return;
    pending = kpti_exception_save();
    count_unreached();
    installed = 0;
    previous = previous_hook;
    previous_hook = NULL; /* the calls below may run Python and install the hooks again */
    if (previous) set_thread_hook(previous, NULL);
    Py_XDECREF(previous);
    (void)for_each_thread(reset_one); /* without memory they stay, and record nothing */
    kpti_exception_restore(pending);
}

kpt_status kpti_hooks_install(uint32_t tool_id, kpt_str name, kpti_error *error)
{
    kpti_pending_exception pending;
    uint64_t youngest;
    (void)tool_id; /* tools exist only with sys.monitoring */
    (void)name;
    if (installed) return KPT_OK;
    pending = kpti_exception_save();
    installed = 1;
    if (!thread_hook) thread_hook = PyCFunction_New(&new_thread_method, NULL);
    if (thread_hook) set_thread_hook(thread_hook, &previous_hook);
    PyErr_Clear();
    reached = 0;
    youngest = for_each_thread(set_one);
    first_id = youngest + 1;
    kpti_exception_restore(pending);
    if (youngest) return KPT_OK;
    kpti_hooks_remove();
    return kpti_fail(error, KPT_E_MEMORY,
                     "no memory to set the profile function of Python's threads");
}

void kpti_hooks_forget(void)
{
    installed = 0;
    thread_hook = NULL;
    previous_hook = NULL;
    while (displaced_list) {
        displaced *d = displaced_list;
        displaced_list = d->next;
        free(d);
    }
}
