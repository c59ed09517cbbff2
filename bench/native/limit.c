/* limit.c: the floor: the interpreter's best mechanism with hooks that do nothing, or only read the tick
 * counter, as every recorder must. It is a Python module that the tracing benchmark imports:
 *
 *   start(ticks)   hooks every event that the tracer hooks, in every thread (3.10 and 3.11: in this)
 *   stop()
 *   TOOL           the number of its sys.monitoring tool
 *
 * Built once per CPython, like the backends. It filters nothing and records nothing. */
#include <stddef.h>

#include "core/base/platform.h"
#include "python_tracer/interpreter/cpython.h"

/* The number of the sys.monitoring tool. The tracer uses 3 and 4, cProfile 2 and coverage 1. */
enum { TOOL = 5 };

#if KPTI_MONITORING

static PyObject *on_nothing(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    (void)self;
    (void)args;
    (void)nargs;
    (void)names;
    return Py_None; /* which is immortal */
}

static PyObject *on_ticks(PyObject *self, PyObject *const *args, size_t nargs, PyObject *names)
{
    (void)self;
    (void)args;
    (void)nargs;
    (void)names;
    (void)kpti_ticks();
    return Py_None;
}

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
    .name = "kpt_limit.callback",
    .basicsize = sizeof(callback),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = callback_slots,
};

static const char *const names[] = {"PY_START",  "PY_RESUME", "PY_THROW", "PY_RETURN", "PY_YIELD",
                                    "PY_UNWIND", "CALL",      "C_RETURN", "C_RAISE"};
enum { NAMES = sizeof names / sizeof *names };

/* Sets the callback of the event NAME. Returns the event's bit, or -1 with an exception. */
static long hook_event(PyObject *monitoring, const char *name, PyObject *type, vectorcallfunc hook)
{
    PyObject *events = PyObject_GetAttrString(monitoring, "events");
    PyObject *number = events ? PyObject_GetAttrString(events, name) : NULL;
    callback *object = number ? PyObject_New(callback, (PyTypeObject *)type) : NULL;
    PyObject *old = NULL;
    long bit;
    if (object) {
        object->vectorcall = hook;
        old = PyObject_CallMethod(monitoring, "register_callback", "iOO", TOOL, number, object);
    }
    bit = old ? PyLong_AsLong(number) : -1;
    Py_XDECREF(old);
    Py_XDECREF((PyObject *)object);
    Py_XDECREF(number);
    Py_XDECREF(events);
    return bit;
}

static PyObject *start_hooks(int ticks)
{
    PyObject *monitoring = PySys_GetObject("monitoring"); /* borrowed */
    PyObject *used = PyObject_CallMethod(monitoring, "use_tool_id", "is", TOOL, "limit");
    PyObject *type = used ? PyType_FromSpec(&callback_spec) : NULL;
    long mask = 0;
    Py_XDECREF(used);
    if (!type) return NULL;
    for (int i = 0; i < NAMES; i++) {
        long bit = hook_event(monitoring, names[i], type, ticks ? on_ticks : on_nothing);
        if (bit < 0) return NULL;
        mask |= bit;
    }
    Py_DECREF(type);
    return PyObject_CallMethod(monitoring, "set_events", "il", TOOL, mask);
}

static PyObject *stop_hooks(void)
{
    PyObject *monitoring = PySys_GetObject("monitoring");
    PyObject *result = PyObject_CallMethod(monitoring, "set_events", "ii", TOOL, 0);
    if (!result) return NULL;
    Py_DECREF(result);
    return PyObject_CallMethod(monitoring, "free_tool_id", "i", TOOL);
}

#else

static int on_nothing(PyObject *object, PyFrameObject *frame, int what, PyObject *arg)
{
    (void)object;
    (void)frame;
    (void)what;
    (void)arg;
    return 0;
}

static int on_ticks(PyObject *object, PyFrameObject *frame, int what, PyObject *arg)
{
    (void)object;
    (void)frame;
    (void)what;
    (void)arg;
    (void)kpti_ticks();
    return 0;
}

static PyObject *start_hooks(int ticks)
{
    PyEval_SetProfile(ticks ? on_ticks : on_nothing, NULL);
    Py_RETURN_NONE;
}

static PyObject *stop_hooks(void)
{
    PyEval_SetProfile(NULL, NULL);
    Py_RETURN_NONE;
}

#endif

static PyObject *start(PyObject *self, PyObject *ticks)
{
    (void)self;
    return start_hooks(PyObject_IsTrue(ticks));
}

static PyObject *stop(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    return stop_hooks();
}

static PyMethodDef methods[] = {{"start", start, METH_O, "Hooks every event; reads ticks if true."},
                                {"stop", stop, METH_NOARGS, "Unhooks."},
                                {NULL, NULL, 0, NULL}};

static int add_constants(PyObject *self)
{
    return PyModule_AddIntConstant(self, "TOOL", TOOL);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, add_constants},
#if KPTI_FREE_THREADED
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef module = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "kpt_limit",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit_kpt_limit(void);
PyMODINIT_FUNC PyInit_kpt_limit(void)
{
    return PyModuleDef_Init(&module);
}
