#include "hosts/torch/session/module_snapshot.h"

// torch's classes Tensor and Parameter. Compiling the header that declares them takes as long as compiling
// everything else.
extern PyObject *THPVariableClass;
extern PyObject *ParameterClass;

namespace kpytrace
{

using torch::profiler::impl::NNModuleInfo;
using torch::profiler::impl::OptimizerInfo;
using torch::profiler::impl::RawTensorMetadata;
using torch::profiler::impl::TensorMetadata;

namespace
{

// Owns a reference. Clears the error of the call that failed to make it.
class PyRef
{
  public:
    explicit PyRef(PyObject *object) : object_(object)
    {
        if (!object_) PyErr_Clear();
    }
    ~PyRef()
    {
        Py_XDECREF(object_);
    }
    PyRef(const PyRef &) = delete;
    PyRef &operator=(const PyRef &) = delete;
    operator PyObject *() const
    {
        return object_;
    }

  private:
    PyObject *object_;
};

// Subclasses of Tensor may define their size differently, so only the exact types are read.
bool is_tensor(PyObject *object)
{
    auto *type = reinterpret_cast<PyObject *>(Py_TYPE(object));
    return type == THPVariableClass || type == ParameterClass;
}

std::optional<TensorMetadata> metadata_of(PyObject *object)
{
    if (!object || !is_tensor(object)) return std::nullopt;
    PyRef address(PyObject_GetAttrString(object, "_cdata"));
    auto *found = static_cast<c10::TensorImpl *>(address ? PyLong_AsVoidPtr(address) : nullptr);
    if (!found) return std::nullopt;
    using Reference = c10::intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl>;
    at::Tensor tensor(Reference::reclaim_copy(found));
    if (!tensor.defined()) return std::nullopt;
    RawTensorMetadata raw(tensor);
    bool strided = raw.layout_ == at::kStrided;
    return TensorMetadata(raw, strided ? tensor.sizes().vec() : std::vector<int64_t>(),
                          strided ? tensor.strides().vec() : std::vector<int64_t>());
}

std::optional<TensorMetadata> grad_of(PyObject *parameter)
{
    return metadata_of(PyRef(PyObject_GetAttrString(parameter, "grad")));
}

std::string text_of(PyObject *text)
{
    const char *bytes = text && PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : nullptr;
    PyErr_Clear();
    return bytes ? bytes : "?";
}

at::StringView class_name(PyObject *object)
{
    PyRef name(PyObject_GetAttrString(reinterpret_cast<PyObject *>(Py_TYPE(object)), "__name__"));
    return at::StringView(text_of(name));
}

// Returns OBJECT's attribute as a dict. A mapping that is not a dict (a scripted module's) is copied.
PyObject *dict_attribute(PyObject *object, const char *name)
{
    PyRef value(PyObject_GetAttrString(object, name));
    if (!value) return nullptr;
    if (PyDict_Check(value)) return Py_NewRef(static_cast<PyObject *>(value));
    PyObject *copy = PyDict_New();
    if (copy && PyDict_Update(copy, value) != 0) Py_CLEAR(copy);
    return copy;
}

void read_state(PyObject *states, PyObject *parameter, OptimizerInfo::ParameterInfo &out)
{
    PyObject *state = states ? PyDict_GetItemWithError(states, parameter) : nullptr;
    PyObject *name;
    PyObject *value;
    Py_ssize_t position = 0;
    if (!state || !PyDict_Check(state)) return;
    while (PyDict_Next(state, &position, &name, &value))
        if (auto metadata = metadata_of(value)) out.state_.emplace_back(text_of(name), *metadata);
}

void read_group(PyObject *group, PyObject *states, OptimizerInfo &out)
{
    PyObject *list = PyDict_Check(group) ? PyDict_GetItemString(group, "params") : nullptr;
    PyRef parameters(list ? PySequence_List(list) : nullptr);
    if (!parameters) return;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(static_cast<PyObject *>(parameters)); i++) {
        PyObject *parameter = PyList_GET_ITEM(static_cast<PyObject *>(parameters), i);
        auto metadata = metadata_of(parameter);
        if (!metadata) continue;
        OptimizerInfo::ParameterInfo info{*metadata, grad_of(parameter), {}};
        read_state(states, parameter, info);
        out.parameters_.push_back(std::move(info));
    }
}

} // namespace

NNModuleInfo read_module(PyObject *module, bool with_parameters)
{
    NNModuleInfo info;
    PyObject *name;
    PyObject *parameter;
    Py_ssize_t position = 0;
    info.self_ = torch::profiler::impl::PyModuleSelf(module);
    info.cls_ = torch::profiler::impl::PyModuleCls(reinterpret_cast<PyObject *>(Py_TYPE(module)));
    info.cls_name_ = class_name(module);
    if (!with_parameters) return info;
    PyRef parameters(dict_attribute(module, "_parameters"));
    while (parameters && PyDict_Next(parameters, &position, &name, &parameter))
        if (auto metadata = metadata_of(parameter))
            info.parameters_.push_back({text_of(name), *metadata, grad_of(parameter)});
    PyErr_Clear();
    return info;
}

OptimizerInfo read_optimizer(PyObject *optimizer)
{
    OptimizerInfo info;
    info.self_ = torch::profiler::impl::PyOptimizerSelf(optimizer);
    info.cls_ =
        torch::profiler::impl::PyOptimizerCls(reinterpret_cast<PyObject *>(Py_TYPE(optimizer)));
    info.cls_name_ = class_name(optimizer);
    PyRef states(dict_attribute(optimizer, "state"));
    PyRef attribute(PyObject_GetAttrString(optimizer, "param_groups"));
    PyRef groups(attribute ? PySequence_List(attribute) : nullptr);
    for (Py_ssize_t i = 0; groups && i < PyList_GET_SIZE(static_cast<PyObject *>(groups)); i++)
        read_group(PyList_GET_ITEM(static_cast<PyObject *>(groups), i), states, info);
    PyErr_Clear();
    return info;
}

} // namespace kpytrace
