/* hooks_monitoring.c: the hooks on sys.monitoring, CPython 3.12 and later. They cover every thread of the
 * interpreter, also threads that start later, whatever code starts them.
 *
 * Each event has a callback object whose vectorcall is a C function. The shared parts are python_event and
 * call_event below. Callbacks never raise. They return None, or DISABLE for code that no tracer records.
 * For unwinding and throwing they never return DISABLE, which would raise in the user's code.
 *
 * The interpreter reports CALL for every call. Only C functions count: PyCFunction, method descriptors, and
 * bound methods of them; the same that PyEval_SetProfile reports. */
#include "python_tracer/hooks/hooks.h"

#include "python_tracer/hooks/record_event.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/pending_exception.h"

enum { FIRST_TOOL = 3, LAST_TOOL = 4 };

/* sys.monitoring's DISABLE, and MISSING, which stands for the arguments of a call without any. Both are set
 * before our callbacks can run, so the callbacks read them without memory ordering. */
static _Atomic(PyObject *) disable;
static _Atomic(PyObject *) missing;
static PyObject *callback_type; /* made once: making a type acquires a lock shared by all threads */
static int tool = -1;           /* our tool id while the hooks are installed */

static inline int is_missing(const PyObject *argument)
{
    return argument == atomic_load_explicit(&missing, memory_order_relaxed);
}

static PyObject *disabled(void)
{
    return Py_NewRef(atomic_load_explicit(&disable, memory_order_relaxed));
}

/* The general path. It disables events of code that no tracer records. */
static KPTI_COLD_NOINLINE PyObject *python_event(PyObject *const *args, uint32_t kind,
                                                 int may_disable)
{
    uint32_t mask = kpti_slow_code((PyCodeObject *)args[0], kind);
    return mask || !may_disable ? Py_None : disabled();
}

/* The general path for a call. It disables events of a code location whose calls no tracer records. */
static KPTI_COLD_NOINLINE PyObject *call_event(PyObject *const *args, uint32_t kind,
                                               int may_disable)
{
    PyObject *first = is_missing(args[3]) ? NULL : args[3];
    uint32_t offset = (uint32_t)PyLong_AsLong(args[1]);
    uint32_t mask = kpti_slow_call((PyCodeObject *)args[0], offset, args[2], first, kind);
    return mask || !may_disable ? Py_None : disabled();
}

/* The fast path for a call or its end. */
static KPTI_ALWAYS_INLINE int quick_call(PyObject *const *args, uint32_t kind)
{
    PyCodeObject *caller = (PyCodeObject *)args[0];
    PyObject *callable = args[2];
    kpti_c_function function;
    if (Py_TYPE(callable) == &PyCFunction_Type)
        function = kpti_builtin(callable);
    else if (Py_TYPE(callable) == &PyFunction_Type)
        return kpti_fast_ignore(caller);
    else if (Py_TYPE(callable) == &PyMethodDescr_Type && !is_missing(args[3]))
        function = kpti_descriptor(callable, args[3]);
    else
        return kpti_fast_ignore_other(caller, callable);
    return kpti_fast_c(function, caller, kind);
}

/* None is immortal from 3.12 on, so the callbacks don't count their references to it. */

static PyObject *on_start(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    (void)self;
    (void)nargs;
    (void)names;
    if (kpti_fast_code((PyCodeObject *)args[0], KPTI_EVENT_ENTER)) return Py_None;
    return python_event(args, KPTI_EVENT_ENTER, 1);
}

static PyObject *on_resume(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    PyCodeObject *code = (PyCodeObject *)args[0];
    uint32_t offset = (uint32_t)PyLong_AsLong(args[1]);
    (void)self;
    (void)nargs;
    (void)names;
    if (kpti_fast_resume(code, offset)) return Py_None;
    return kpti_slow_resume(code, offset) ? Py_None : disabled();
}

static PyObject *on_throw(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    (void)self;
    (void)nargs;
    (void)names;
    (void)kpti_slow_resume((PyCodeObject *)args[0], (uint32_t)PyLong_AsLong(args[1]));
    return Py_None;
}

static PyObject *on_return(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    (void)self;
    (void)nargs;
    (void)names;
    if (kpti_fast_code((PyCodeObject *)args[0], KPTI_EVENT_EXIT)) return Py_None;
    return python_event(args, KPTI_EVENT_EXIT, 1);
}

static PyObject *on_unwind(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    (void)self;
    (void)nargs;
    (void)names;
    return python_event(args, KPTI_EVENT_EXIT, 0);
}

static PyObject *on_call(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    (void)self;
    (void)nargs;
    (void)names;
    if (quick_call(args, KPTI_EVENT_ENTER)) return Py_None;
    return call_event(args, KPTI_EVENT_ENTER, 1);
}

static PyObject *on_c_return(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    (void)self;
    (void)nargs;
    (void)names;
    if (quick_call(args, KPTI_EVENT_EXIT)) return Py_None;
    return call_event(args, KPTI_EVENT_EXIT, 0);
}

/* A callable object around one of the functions above. */
typedef struct callback {
    PyObject_HEAD vectorcallfunc vectorcall;
} callback;

static PyType_Slot callback_slots[] = {
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, (PyMemberDef[]){{"__vectorcalloffset__", Py_T_PYSSIZET,
                                     offsetof(callback, vectorcall), Py_READONLY, NULL},
                                    {NULL, 0, 0, 0, NULL}}},
    {0, NULL},
};

static PyType_Spec callback_spec = {
    .name = "kpytrace.callback",
    .basicsize = sizeof(callback),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = callback_slots,
};

/* The callback function for each event. */
static const struct row {
    const char *event;
    vectorcallfunc function;

} rows[] = {
    {"PY_START", on_start},   {"PY_RESUME", on_resume},  {"PY_THROW", on_throw},
    {"PY_RETURN", on_return}, {"PY_YIELD", on_return},   {"PY_UNWIND", on_unwind},
    {"CALL", on_call},        {"C_RETURN", on_c_return}, {"C_RAISE", on_c_return},
};
enum { ROWS = sizeof rows / sizeof *rows };

static PyObject *new_callback(vectorcallfunc function)
{
    callback *object = PyObject_New(callback, (PyTypeObject *)callback_type);
    if (object) object->vectorcall = function;
    return (PyObject *)object;
}

/* Registers the rows' callbacks. Returns the mask of their events, or -1 with an exception. */
static long register_rows(PyObject *monitoring, PyObject *events)
{
    long mask = 0;
    if (!callback_type) callback_type = PyType_FromSpec(&callback_spec);
    if (!callback_type) return -1;
    for (int i = 0; i < ROWS && mask >= 0; i++) {
        PyObject *number = PyObject_GetAttrString(events, rows[i].event);
        PyObject *object = number ? new_callback(rows[i].function) : NULL;
        PyObject *old = object ? PyObject_CallMethod(monitoring, "register_callback", "iOO", tool,
                                                     number, object)
                               : NULL;
        mask = old ? mask | PyLong_AsLong(number) : -1;
        Py_XDECREF(old);
        Py_XDECREF(object);
        Py_XDECREF(number);
    }
    return mask;
}

static int call_with_int(PyObject *monitoring, const char *method, int number)
{
    PyObject *result = PyObject_CallMethod(monitoring, method, "i", number);
    Py_XDECREF(result);
    return result != NULL;
}

/* Claims the first free tool id: WANTED under the host's NAME or, if WANTED is 0, tool 3, then 4. Returns
 * -1 if none is free. */
static int take_tool(PyObject *monitoring, uint32_t wanted, kpt_str name)
{
    int first = wanted ? (int)wanted : FIRST_TOOL;
    int last = wanted ? (int)wanted : LAST_TOOL;
    if (!wanted || !name.size) name = kpt_str_of("kpytrace");
    for (int id = first; id <= last; id++) {
        PyObject *text = PyUnicode_DecodeUTF8(name.data, (Py_ssize_t)name.size, "replace");
        PyObject *result =
            text ? PyObject_CallMethod(monitoring, "use_tool_id", "iO", id, text) : NULL;
        Py_XDECREF(text);
        Py_XDECREF(result);
        if (result) return id;
        PyErr_Clear();
    }
    return -1;
}

static void release_tool(PyObject *monitoring)
{
    int ours = tool;
    PyObject *result;
    tool = -1; /* the calls below may run Python and re-enter this function */
    result = PyObject_CallMethod(monitoring, "set_events", "ii", ours, 0);
    Py_XDECREF(result);
    PyErr_Clear();
    (void)call_with_int(monitoring, "free_tool_id", ours);
    PyErr_Clear();
}

static kpt_status install(PyObject *monitoring, uint32_t wanted, kpt_str name, kpti_error *error)
{
    PyObject *events = PyObject_GetAttrString(monitoring, "events");
    PyObject *result = NULL;
    long mask = -1;
    tool = take_tool(monitoring, wanted, name);
    if (tool < 0) {
        Py_XDECREF(events);
        return wanted ? kpti_fail(error, KPT_E_BUSY,
                                  "sys.monitoring tool %u is in use: set tool_id to another "
                                  "number, or to 0 to use a free one",
                                  wanted)
                      : kpti_fail(error, KPT_E_BUSY,
                                  "sys.monitoring tools %d and %d are both in use: free one of "
                                  "them, or set tool_id to another number",
                                  FIRST_TOOL, LAST_TOOL);
    }
    /* Once per interpreter: a callback of earlier hooks may still be reading them. */
    if (!disable) disable = PyObject_GetAttrString(monitoring, "DISABLE");
    if (!missing) missing = PyObject_GetAttrString(monitoring, "MISSING");
    if (events && disable && missing) mask = register_rows(monitoring, events);
    /* A DISABLE from an earlier run would hide functions from this one. */
    if (mask >= 0) result = PyObject_CallMethod(monitoring, "restart_events", NULL);
    if (result) Py_SETREF(result, PyObject_CallMethod(monitoring, "set_events", "il", tool, mask));
    Py_XDECREF(events);
    if (!result) {
        PyErr_Clear();
        release_tool(monitoring);
        return kpti_fail(error, KPT_E_INTERNAL,
                         "sys.monitoring rejected the callbacks of kpytrace");
    }
    Py_DECREF(result);
    return KPT_OK;
}

kpt_status kpti_hooks_install(uint32_t tool_id, kpt_str name, kpti_error *error)
{
    const kpti_pending_exception pending = kpti_exception_save();
    PyObject *monitoring = PySys_GetObject("monitoring"); /* borrowed */
    kpt_status status = KPT_OK;
    if (!monitoring)
        status = kpti_fail(error, KPT_E_UNSUPPORTED, "this Python has no sys.monitoring");
    else if (tool < 0)
        status = install(monitoring, tool_id, name, error);
    else if (tool_id && tool_id != (uint32_t)tool)
        status = kpti_fail(error, KPT_E_BUSY,
                           "another tracer is recording with sys.monitoring tool %d: set tool_id "
                           "to that number, or to 0",
                           tool);
    else
        Py_XDECREF(PyObject_CallMethod(monitoring, "restart_events", NULL));
    kpti_exception_restore(pending);
    return status;
}

void kpti_hooks_remove(void)
{
    kpti_pending_exception pending;
    PyObject *monitoring;
    if (tool < 0) return;
    pending = kpti_exception_save();
    monitoring = PySys_GetObject("monitoring");
    if (monitoring) release_tool(monitoring);
    kpti_exception_restore(pending);
}

void kpti_hooks_forget(void)
{
    tool = -1;
    disable = NULL;
    missing = NULL;
    callback_type = NULL;
}

uint64_t kpti_hooks_unreached(void)
{
    return 0; /* sys.monitoring covers the interpreter, not single threads */
}
