// module.cc: the shim as a Python module for kpytrace.torch. It translates values and errors. The package
// explains errors to users.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hosts/torch/common/torch_address.h"
#include "hosts/torch/execution_trace/py_observer.h"
#include "hosts/torch/memory/py_memory.h"
#include "hosts/torch/profiler/deferred_results.h"
#include "hosts/torch/profiler/tracer.h"
#include "hosts/torch/profiler/tracer_state.h"
#include "hosts/torch/session/py_session_view.h"
#include "hosts/torch/traceback/unwinder.h"

namespace
{

using kpytrace::Recorder;
using torch::profiler::impl::python_tracer::MakeFn;

PyDoc_STRVAR(install_doc, "install(plugin, mode, late_threads, tool_id, prefixes, module_calls, "
                          "optimizer_steps, kept_calls): the last three are lists of code objects");
PyObject *install(PyObject *, PyObject *args)
{
    auto settings = kpytrace::read_settings(args);
    if (!settings) return nullptr;
    kpytrace::install(std::move(settings));
    Py_RETURN_NONE;
}

PyDoc_STRVAR(uninstall_doc,
             "uninstall(distance): registers torch's tracer factory, at that distance from "
             "THPVariableClass; 0 registers none");
PyObject *uninstall(PyObject *, PyObject *args)
{
    long long distance;
    if (!PyArg_ParseTuple(args, "L", &distance)) return nullptr;
    kpytrace::uninstall(reinterpret_cast<MakeFn>(kpytrace::torch_address(distance)));
    Py_RETURN_NONE;
}

void free_recording(PyObject *capsule)
{
    delete static_cast<std::shared_ptr<Recorder> *>(PyCapsule_GetContext(capsule));
}

PyDoc_STRVAR(take_doc, "take_recording() -> a capsule with the last session's recording, or None");
PyObject *take_recording(PyObject *, PyObject *)
{
    auto recorder = kpytrace::take_recording();
    if (!recorder) Py_RETURN_NONE;
    auto *lent = const_cast<kpti_torch_recording *>(recorder->lent());
    PyObject *capsule = PyCapsule_New(lent, KPTI_TORCH_RECORDING_CAPSULE, free_recording);
    if (!capsule) return nullptr;
    (void)PyCapsule_SetContext(capsule, new std::shared_ptr<Recorder>(std::move(recorder)));
    return capsule;
}

PyDoc_STRVAR(hand_over_doc,
             "hand_over(recording, result): passes the calls to torch that are still due");
PyObject *hand_over(PyObject *, PyObject *args)
{
    PyObject *capsule;
    PyObject *result;
    if (!PyArg_ParseTuple(args, "O!O", &PyCapsule_Type, &capsule, &result)) return nullptr;
    auto *recorder = static_cast<std::shared_ptr<Recorder> *>(PyCapsule_GetContext(capsule));
    try {
        kpytrace::hand_over(**recorder, result);
    } catch (const std::exception &error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
        return nullptr;
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(install_unwinder_doc,
             "install_unwinder(plugin) -> None, or why torch keeps its own unwinder");
PyObject *install_unwinder(PyObject *, PyObject *args)
{
    const char *plugin;
    if (!PyArg_ParseTuple(args, "s", &plugin)) return nullptr;
    const std::string why = kpytrace::install_unwinder(plugin);
    if (why.empty()) Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(why.data(), static_cast<Py_ssize_t>(why.size()), "replace");
}

PyDoc_STRVAR(uninstall_unwinder_doc, "uninstall_unwinder(): restores torch's own unwinder");
PyObject *uninstall_unwinder(PyObject *, PyObject *)
{
    kpytrace::uninstall_unwinder();
    Py_RETURN_NONE;
}

PyDoc_STRVAR(mode_of_doc, "mode_of(recording) -> the mode of install() when the recording began");
PyObject *mode_of(PyObject *, PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, KPTI_TORCH_RECORDING_CAPSULE)) {
        PyErr_SetString(PyExc_TypeError, "mode_of() expects a recording");
        return nullptr;
    }
    auto *recorder = static_cast<std::shared_ptr<Recorder> *>(PyCapsule_GetContext(capsule));
    return PyLong_FromLong(static_cast<long>((*recorder)->settings().mode));
}

PyDoc_STRVAR(tracing_doc, "tracing() -> whether a profiler has a live tracer");
PyObject *tracing(PyObject *, PyObject *)
{
    return PyBool_FromLong(kpytrace::tracing());
}

PyMethodDef methods[] = {
    {"install", install, METH_VARARGS, install_doc},
    {"uninstall", uninstall, METH_VARARGS, uninstall_doc},
    {"take_recording", take_recording, METH_NOARGS, take_doc},
    {"hand_over", hand_over, METH_VARARGS, hand_over_doc},
    {"install_unwinder", install_unwinder, METH_VARARGS, install_unwinder_doc},
    {"uninstall_unwinder", uninstall_unwinder, METH_NOARGS, uninstall_unwinder_doc},
    {"tracing", tracing, METH_NOARGS, tracing_doc},
    {"mode_of", mode_of, METH_O, mode_of_doc},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "_shim_module",
    "kpytrace in torch's profiler. Use the package's functions.",
    -1,
    methods,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
};

} // namespace

PyMODINIT_FUNC PyInit__shim_module(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddFunctions(module, kpytrace::memory_methods) < 0) Py_CLEAR(module);
    if (module && PyModule_AddFunctions(module, kpytrace::observer_calls) < 0) Py_CLEAR(module);
    if (module && PyModule_AddFunctions(module, kpytrace::session_view_methods) < 0)
        Py_CLEAR(module);
    return module;
}
