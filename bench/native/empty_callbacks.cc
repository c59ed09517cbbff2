// empty_callbacks.cc: a pair of RecordFunction callbacks that does nothing, as a Python module: what torch itself takes to
// call anyone for each operator. bench/measure/operators.py compiles it.
#include <Python.h>

#include <ATen/record_function.h>

namespace
{

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction &)
{
    return nullptr;
}

void end(const at::RecordFunction &, at::ObserverContext *) {}

at::CallbackHandle handle = 0;

PyObject *add(PyObject *, PyObject *)
{
    handle = at::addGlobalCallback(at::RecordFunctionCallback(begin, end));
    Py_RETURN_NONE;
}

PyObject *remove(PyObject *, PyObject *)
{
    at::removeCallback(handle);
    Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"add", add, METH_NOARGS, nullptr},
    {"remove", remove, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "empty_callbacks",
    nullptr,
    0,
    methods,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
};

} // namespace

PyMODINIT_FUNC PyInit_empty_callbacks()
{
    return PyModule_Create(&definition);
}
