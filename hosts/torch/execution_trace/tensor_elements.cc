#include "hosts/torch/execution_trace/tensor_elements.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/as_strided.h>
#include <ATen/record_function.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace kpytrace
{

namespace
{

// Returns the number of elements between the first and the last in memory, or 0 if a stride is negative.
uint64_t extent_of(const kpt_tensor &given)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < given.dimensions; i++) {
        uint64_t step;
        if (given.sizes[i] <= 0 || given.strides[i] < 0 ||
            __builtin_mul_overflow(given.sizes[i] - 1, given.strides[i], &step) ||
            __builtin_add_overflow(last, step, &last))
            return 0;
    }
    return last + 1;
}

// Returns true if the stream is being captured. The thread must not wait for such a stream. Not in all versions
// of torch.
template <class Guard, class Stream>
auto is_capturing(const Guard &guard, const Stream &stream, int)
    -> decltype(guard.isStreamCapturing(stream))
{
    return guard.isStreamCapturing(stream);
}

template <class Guard, class Stream> bool is_capturing(const Guard &, const Stream &, long)
{
    return false;
}

bool can_copy(const at::Tensor &tensor)
{
    const c10::Device device = tensor.unsafeGetTensorImpl()->unsafe_storage().device();
    if (device.is_meta() || device.is_cpu() || tensor.unsafeGetTensorImpl()->is_python_dispatch())
        return false;
    const c10::impl::VirtualGuardImpl guard(device.type());
    return !is_capturing(guard, guard.getStream(device), 0);
}

} // namespace

uint32_t elements_of(at::ScalarType type)
{
    switch (type) {
    case at::ScalarType::Char:
    case at::ScalarType::Short:
    case at::ScalarType::Int:
    case at::ScalarType::Long:
        return KPT_ELEMENTS_SIGNED;
    case at::ScalarType::Byte:
    case at::ScalarType::UInt16:
    case at::ScalarType::UInt32:
    case at::ScalarType::UInt64:
        return KPT_ELEMENTS_UNSIGNED;
    default:
        return KPT_ELEMENTS_OTHER;
    }
}

const void *elements_here(const at::Tensor &tensor, const kpt_tensor &given)
{
    const c10::StorageImpl *storage =
        tensor.unsafeGetTensorImpl()->unsafe_storage().unsafeGetStorageImpl();
    const uint64_t extent = extent_of(given);
    uint64_t end;
    if (!storage->device().is_cpu() || !extent || given.offset_elements < 0 ||
        __builtin_add_overflow(static_cast<uint64_t>(given.offset_elements), extent, &end) ||
        __builtin_mul_overflow(end, given.element_bytes, &end) || end > storage->nbytes() ||
        !storage->data_ptr().get())
        return nullptr;
    return static_cast<const char *>(storage->data_ptr().get()) +
           static_cast<uint64_t>(given.offset_elements) * given.element_bytes;
}

at::Tensor elements_copied(const at::Tensor &tensor, const kpt_tensor &given)
{
    try {
        const auto extent = static_cast<int64_t>(extent_of(given));
        if (!extent || !can_copy(tensor)) return {};
        at::RecordFunctionGuard unseen(false);
        at::AutoDispatchBelowADInplaceOrView plain;
        return at::as_strided(tensor, {extent}, {1}, given.offset_elements)
            .to(at::TensorOptions(at::kCPU), /*non_blocking=*/false, /*copy=*/true);
    } catch (const std::exception &) { // the elements are not recorded
        return {};
    }
}

} // namespace kpytrace
