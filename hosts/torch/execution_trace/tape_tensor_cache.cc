#include "hosts/torch/execution_trace/tape_tensor_cache.h"

#include <algorithm>

namespace kpytrace
{

[[gnu::hot]] void TapedTensor::keep(const c10::TensorImpl &now, const c10::StorageImpl *storage,
                                    const Extents &extents, uint32_t epoch, uint32_t serial,
                                    uint32_t place)
{
    tensor_ = &now;
    storage_ = storage;
    keys_ = now.key_set();
    epoch_ = epoch;
    serial_ = serial;
    place_ = place;
    offset_elements_ = static_cast<int32_t>(extents.offset);
    dtype_ = now.dtype();
    device_ = storage->device();
    dimensions_ = static_cast<uint16_t>(extents.sizes.size());
    for (size_t i = 0; i < extents.sizes.size(); i++)
        extents_[i] = {static_cast<int32_t>(extents.sizes[i]),
                       static_cast<int32_t>(extents.strides[i])};
}

void TapedTensorCache::roll_back()
{
    if (new_count_ > new_.size())
        std::for_each(&slots_[0], &slots_[1 << BITS], [](TapedTensor &slot) { slot.forget(); });
    for (size_t i = 0; i < std::min(new_count_, new_.size()); i++)
        slots_[new_[i]].forget();
    new_count_ = 0;
}

} // namespace kpytrace
