#include "hosts/torch/memory/py_memory.h"

#include "hosts/torch/common/torch_address.h"
#include "hosts/torch/memory/cpu_allocator.h"
#include "hosts/torch/memory/cuda_loader.h"
#include "hosts/torch/memory/memory_factory.h"
#include "hosts/torch/memory/module_scope.h"
#include "hosts/torch/memory/tensor_reports.h"

namespace kpytrace
{
namespace memory_calls
{

// The standalone host's name of a capsule with a kpt_memory_tracer.
constexpr const char *CAPSULE = "kpytrace.memory_tracer";

PyObject *reason_of(const std::string &why)
{
    if (why.empty()) Py_RETURN_NONE;
    return PyUnicode_FromStringAndSize(why.data(), static_cast<Py_ssize_t>(why.size()));
}

PyDoc_STRVAR(record_doc, "record_tensors(tracer) -> None, or why tensors are not recorded");
PyObject *record(PyObject *, PyObject *capsule)
{
    auto *tracer = static_cast<kpt_memory_tracer *>(PyCapsule_GetPointer(capsule, CAPSULE));
    if (!tracer) return nullptr;
    std::string why;
    Py_BEGIN_ALLOW_THREADS;
    why = record_tensors(*tracer);
    Py_END_ALLOW_THREADS;
    return reason_of(why);
}

PyDoc_STRVAR(stop_doc, "stop_tensors(tracer): stops reporting tensors to the tracer");
PyObject *stop(PyObject *, PyObject *capsule)
{
    auto *tracer = static_cast<kpt_memory_tracer *>(PyCapsule_GetPointer(capsule, CAPSULE));
    if (!tracer) return nullptr;
    Py_BEGIN_ALLOW_THREADS;
    stop_tensors(*tracer);
    Py_END_ALLOW_THREADS;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(follow_doc, "follow_modules(function): counts a call of FUNCTION as a call of its "
                         "first argument, a module");
PyObject *follow(PyObject *, PyObject *function)
{
    if (follow_modules(function)) Py_RETURN_NONE;
    PyErr_SetString(PyExc_TypeError, "follow_modules() expects a Python function");
    return nullptr;
}

PyDoc_STRVAR(unfollow_doc, "unfollow_modules(): stops following calls of modules");
PyObject *unfollow(PyObject *, PyObject *)
{
    unfollow_modules();
    Py_RETURN_NONE;
}

PyDoc_STRVAR(attach_doc, "attach_cuda(library) -> None, or why CUDA tensors are not recorded");
PyObject *attach(PyObject *, PyObject *args)
{
    const char *library;
    if (!PyArg_ParseTuple(args, "s", &library)) return nullptr;
    std::string why;
    Py_BEGIN_ALLOW_THREADS;
    why = attach_cuda(library);
    Py_END_ALLOW_THREADS;
    return reason_of(why);
}

PyDoc_STRVAR(open_doc,
             "install_memory_factory(plugin): records snapshots on demand through the plugin");
PyObject *open(PyObject *, PyObject *args)
{
    const char *plugin;
    if (!PyArg_ParseTuple(args, "s", &plugin)) return nullptr;
    install_memory_factory(plugin);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(close_doc,
             "uninstall_memory_factory(distance): registers torch's factory, at that distance from "
             "THPVariableClass; 0 registers none");
PyObject *close(PyObject *, PyObject *args)
{
    long long distance;
    if (!PyArg_ParseTuple(args, "L", &distance)) return nullptr;
    uninstall_memory_factory(reinterpret_cast<torch::profiler::impl::python_tracer::MakeMemoryFn>(
        torch_address(distance)));
    Py_RETURN_NONE;
}

} // namespace memory_calls

PyMethodDef memory_methods[] = {
    {"record_tensors", memory_calls::record, METH_O, memory_calls::record_doc},
    {"stop_tensors", memory_calls::stop, METH_O, memory_calls::stop_doc},
    {"attach_cuda", memory_calls::attach, METH_VARARGS, memory_calls::attach_doc},
    {"follow_modules", memory_calls::follow, METH_O, memory_calls::follow_doc},
    {"unfollow_modules", memory_calls::unfollow, METH_NOARGS, memory_calls::unfollow_doc},
    {"install_memory_factory", memory_calls::open, METH_VARARGS, memory_calls::open_doc},
    {"uninstall_memory_factory", memory_calls::close, METH_VARARGS, memory_calls::close_doc},
    {nullptr, nullptr, 0, nullptr},
};

} // namespace kpytrace
