#include "hosts/torch/execution_trace/py_observer.h"

#include <torch/csrc/autograd/python_variable.h>

#include "hosts/torch/execution_trace/observer.h"
#include "hosts/torch/execution_trace/record_function_callbacks.h"
#include "hosts/torch/execution_trace/tensor_identity.h"

namespace kpytrace
{

namespace
{

const char OBSERVER_CAPSULE[] = "kpytrace.observer";

// Releases the GIL during CALL: an observer waits for threads, which may wait for the GIL.
template <class Call> auto without_gil(Call call)
{
    PyThreadState *state = PyEval_SaveThread();
    auto result = call();
    PyEval_RestoreThread(state);
    return result;
}

PyObject *os_error(const std::string &text)
{
    PyErr_SetString(PyExc_OSError, text.c_str());
    return nullptr;
}

void free_observer(PyObject *capsule)
{
    auto *observer = static_cast<Observer *>(PyCapsule_GetPointer(capsule, OBSERVER_CAPSULE));
    (void)without_gil([observer] {
        release_observer(observer);
        return 0;
    });
}

PyDoc_STRVAR(observer_doc,
             "observer(plugin, stacks, ranges, data_ops) -> a new observer, a capsule");
PyObject *observer(PyObject *, PyObject *args)
{
    const char *plugin;
    int stacks;
    int ranges;
    const char *data_ops;
    if (!PyArg_ParseTuple(args, "spps", &plugin, &stacks, &ranges, &data_ops)) return nullptr;
    ObserverSettings settings{plugin, stacks != 0, ranges != 0, data_ops};
    std::string why;
    Observer *taken = take_observer(std::move(settings), why); // needs the GIL to prepare stacks
    if (!taken) return os_error(why);
    PyObject *capsule = PyCapsule_New(taken, OBSERVER_CAPSULE, free_observer);
    if (!capsule) release_observer(taken);
    return capsule;
}

// Runs CALL with the observer in CAPSULE, and converts its result to Python.
template <class Call> PyObject *controlled(PyObject *capsule, Call call)
{
    auto *self = static_cast<Observer *>(PyCapsule_GetPointer(capsule, OBSERVER_CAPSULE));
    if (!self) return nullptr;
    if (!without_gil([self, &call] { return call(*self); })) return os_error(self->error());
    Py_RETURN_NONE;
}

// A converter for PyArg_ParseTuple.
int read_path(PyObject *given, void *to)
{
    PyObject *bytes;
    if (!PyUnicode_FSConverter(given, &bytes)) return 0;
    static_cast<std::string *>(to)->assign(PyBytes_AS_STRING(bytes),
                                           static_cast<size_t>(PyBytes_GET_SIZE(bytes)));
    Py_DECREF(bytes);
    return 1;
}

PyDoc_STRVAR(open_observer_doc, "open_observer(observer, path): begins the trace file at PATH");
PyObject *open_observer(PyObject *, PyObject *args)
{
    PyObject *capsule;
    std::string path;
    if (!PyArg_ParseTuple(args, "OO&", &capsule, read_path, &path)) return nullptr;
    return controlled(capsule, [&path](Observer &self) { return self.open(path); });
}

PyDoc_STRVAR(recover_trace_doc,
             "recover_trace(observer, journal, path): writes the trace of a journal to PATH");
PyObject *recover_trace(PyObject *, PyObject *args)
{
    PyObject *capsule;
    std::string journal;
    std::string path;
    if (!PyArg_ParseTuple(args, "OO&O&", &capsule, read_path, &journal, read_path, &path))
        return nullptr;
    return controlled(capsule, [&](Observer &self) { return self.recover(journal, path); });
}

PyDoc_STRVAR(start_observer_doc, "start_observer(observer): begins to record, or continues");
PyObject *start_observer(PyObject *, PyObject *capsule)
{
    return controlled(capsule, [](Observer &self) { return self.start(); });
}

PyDoc_STRVAR(stop_observer_doc, "stop_observer(observer): stops recording until the next start");
PyObject *stop_observer(PyObject *, PyObject *capsule)
{
    return controlled(capsule, [](Observer &self) { return self.stop(); });
}

PyDoc_STRVAR(close_observer_doc, "close_observer(observer): completes the trace file");
PyObject *close_observer(PyObject *, PyObject *capsule)
{
    return controlled(capsule, [](Observer &self) { return self.close(); });
}

PyDoc_STRVAR(forget_tensor_doc, "forget_tensor(tensor): drops our weak reference to it");
PyObject *forget_tensor(PyObject *, PyObject *tensor)
{
    if (!THPVariable_Check(tensor)) {
        PyErr_SetString(PyExc_TypeError, "forget_tensor() expects a tensor");
        return nullptr;
    }
    forget(THPVariable_Unpack(tensor).unsafeGetTensorImpl());
    Py_RETURN_NONE;
}

PyDoc_STRVAR(
    trace_operators_doc,
    "trace_operators(ops, tracer, inputs, mark) -> bool: from now on the tracer records "
    "operators, with their inputs if INPUTS, in threads that have the MARK of "
    "view_thread(), or in all if that is 0. leave_operators() comes before leave_thread()");
PyObject *trace_operators(PyObject *, PyObject *args)
{
    unsigned long long ops;
    unsigned long long self;
    kpt_tracer tracer;
    int inputs;
    unsigned long long mark;
    bool began;
    if (!PyArg_ParseTuple(args, "KKpK", &ops, &self, &inputs, &mark)) return nullptr;
    const auto *profiled = reinterpret_cast<const ThreadState *>(static_cast<uintptr_t>(mark));
    KPT_INIT(&tracer);
    tracer.ops = reinterpret_cast<const kpt_tracer_ops *>(static_cast<uintptr_t>(ops));
    tracer.self = self;
    Py_BEGIN_ALLOW_THREADS // a thread inside a callback may wait for the GIL
        began = begin_tracing_ops(tracer, inputs != 0, profiled);
    Py_END_ALLOW_THREADS return PyBool_FromLong(began);
}

PyDoc_STRVAR(leave_operators_doc, "leave_operators(tracer): the tracer records no more operators");
PyObject *leave_operators(PyObject *, PyObject *self)
{
    const unsigned long long tracer = PyLong_AsUnsignedLongLong(self);
    if (PyErr_Occurred()) return nullptr;
    Py_BEGIN_ALLOW_THREADS end_tracing_ops(tracer);
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

} // namespace

PyMethodDef observer_calls[] = {
    {"observer", observer, METH_VARARGS, observer_doc},
    {"open_observer", open_observer, METH_VARARGS, open_observer_doc},
    {"start_observer", start_observer, METH_O, start_observer_doc},
    {"stop_observer", stop_observer, METH_O, stop_observer_doc},
    {"close_observer", close_observer, METH_O, close_observer_doc},
    {"recover_trace", recover_trace, METH_VARARGS, recover_trace_doc},
    {"forget_tensor", forget_tensor, METH_O, forget_tensor_doc},
    {"trace_operators", trace_operators, METH_VARARGS, trace_operators_doc},
    {"leave_operators", leave_operators, METH_O, leave_operators_doc},
    {nullptr, nullptr, 0, nullptr},
};

} // namespace kpytrace
