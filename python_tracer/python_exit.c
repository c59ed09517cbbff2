#include "python_tracer/python_exit.h"

#include "python_tracer/allocators/allocator_hooks.h"
#include "python_tracer/capture/stack_capture.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/pending_exception.h"
#include "python_tracer/interpreter/py_import.h"
#include "python_tracer/tracing_control.h"

static PyObject *on_exit_of_python(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    kpti_memory_hooks_exit();
    kpti_capture_exit();
    kpti_tracing_exit();
    Py_RETURN_NONE;
}

static PyMethodDef method = {"kpytrace_at_exit", on_exit_of_python, METH_NOARGS, NULL};

void kpti_python_exit_watch(void)
{
    kpti_pending_exception pending;
    PyObject *atexit;
    PyObject *function;
    PyObject *result = NULL;
    pending = kpti_exception_save();
    atexit = kpti_import("atexit");
    function = PyCFunction_New(&method, NULL);
    if (atexit && function) result = PyObject_CallMethod(atexit, "register", "O", function);
    Py_XDECREF(result);
    Py_XDECREF(function);
    Py_XDECREF(atexit);
    kpti_exception_restore(pending);
}
