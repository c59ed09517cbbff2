#include "hosts/torch/execution_trace/tensor_description.h"

#include <c10/core/TensorOptions.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "hosts/torch/execution_trace/tensor_identity.h"
#include "hosts/torch/operators/op_texts.h"
#include "hosts/torch/operators/text_view.h"

namespace kpytrace
{

namespace
{

// Returns false for a tensor with symbolic sizes and for a nested tensor. torch's own observer writes only the
// type of these. The sizes of a Python subclass would be computed in Python, so the stored sizes are used
// instead.
bool has_sizes(const c10::TensorImpl &impl)
{
    return !impl.has_symbolic_sizes_strides() &&
           !impl.key_set().has(c10::DispatchKey::NestedTensor);
}

void describe_sizes(const c10::TensorImpl &impl, bool as_stored, kpt_tensor &to)
{
    const auto sizes = as_stored ? impl.sizes_default() : impl.sizes();
    const auto strides = as_stored ? impl.strides_default() : impl.strides();
    to.dimensions = static_cast<uint32_t>(sizes.size());
    to.sizes = sizes.data();
    to.strides = strides.size() == sizes.size() ? strides.data() : nullptr;
}

// Returns the device of a tensor of a Python class whose storage is on META. A fake tensor has the keys of the
// device that it represents. But while its kernel runs, and torch has meta among the thread's keys, the tensor
// itself is on meta. Only Python knows the device index. Reading it would run Python, and operators, in the
// middle of a report.
c10::Device faked_device(const c10::TensorImpl &impl, c10::Device meta)
{
    const auto backend = impl.key_set().highestBackendKey();
    const auto included = c10::impl::tls_local_dispatch_key_set().included_;
    if (backend == c10::BackendComponent::MetaBit || backend == c10::BackendComponent::InvalidBit ||
        included.has_backend(c10::BackendComponent::MetaBit))
        return meta;
    const auto key = c10::toRuntimePerBackendFunctionalityKey(c10::DispatchKey::Dense, backend);
    return c10::Device(c10::dispatchKeyToDeviceType(key));
}

void describe_kind(const c10::TensorImpl &impl, kpt_tensor &to)
{
    const bool has_storage = impl.has_storage();
    const bool as_stored = !has_storage || impl.is_python_dispatch();
    to.dimensions = 1; // unknown size
    to.dtype = view(impl.dtype().name());
    if (!has_sizes(impl)) return;
    describe_sizes(impl, as_stored, to);
    if (!has_storage) return;
    to.offset_elements = as_stored ? impl.storage_offset_default() : impl.storage_offset();
    to.element_count = as_stored ? impl.numel_default() : impl.numel();
    to.element_bytes = impl.dtype().itemsize();
    const c10::Device stored = impl.unsafe_storage().device();
    to.device = device_text(stored.is_meta() && as_stored ? faked_device(impl, stored) : stored);
}

} // namespace

void describe(c10::TensorImpl &tensor, kpt_tensor &to)
{
    KPT_INIT(&to);
    if (&tensor == c10::UndefinedTensorImpl::singleton()) {
        to.dtype = view(tensor.dtype().name());
        to.tensor_id = UNDEFINED_TENSOR;
        return;
    }
    try {
        describe_kind(tensor, to);
    } catch (const std::exception &) { // a kind of tensor that throws
        to.dimensions = 1;
        to.sizes = to.strides = nullptr;
    }
    auto *storage = to.device.size ? tensor.unsafe_storage().unsafeGetStorageImpl() : nullptr;
    DeadRefs gone;
    const Identity identity = identify(&tensor, storage, gone);
    to.tensor_id = identity.tensor_id;
    to.storage_id = identity.storage_id;
}

} // namespace kpytrace
