// tape_tensor_cache.h: caches the metadata last written for a tensor on a thread's tape, and its position
// there, so that an unchanged tensor is written as a back-reference. Used by one thread.
#ifndef KPTI_HOSTS_TORCH_EXECUTION_TRACE_TAPE_TENSOR_CACHE_H
#define KPTI_HOSTS_TORCH_EXECUTION_TRACE_TAPE_TENSOR_CACHE_H

#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <array>
#include <cstddef>
#include <memory>

#include "hosts/torch/common/hash.h"
#include "hosts/torch/execution_trace/tensor_identity.h"

namespace kpytrace
{

// The extents of a tensor without symbolic sizes and with as many strides as sizes. They are read once, since
// another thread may change the tensor.
struct Extents {
    int64_t offset;
    int64_t count;
    c10::IntArrayRef sizes;
    c10::IntArrayRef strides;
};

// A cache entry. It is small, so that a thread's entries are on few pages: evicting other data from the
// processor's caches costs more than reading the entries. Up to two dimensions, the used part is one cache
// line.
class alignas(64) TapedTensor
{
  public:
    // Returns true if NOW, in its present state, is on the tape with this SERIAL.
    bool holds(const c10::TensorImpl &now, uint32_t serial) const;
    uint32_t place() const
    {
        return place_;
    }
    // Returns true if the cache can hold a tensor with this many dimensions, whose numbers have only these
    // BITS.
    static bool may_keep(size_t dimensions, uint64_t bits)
    {
        return dimensions <= MAX_DIMENSIONS && !(bits >> 31);
    }
    // Stores the state of NOW in this entry.
    void keep(const c10::TensorImpl &now, const c10::StorageImpl *storage, const Extents &extents,
              uint32_t epoch, uint32_t serial, uint32_t place);
    void forget()
    {
        tensor_ = nullptr;
    }

  private:
    enum { MAX_DIMENSIONS = 8 };

    struct Extent {
        int32_t size;
        int32_t stride;
    };

    const c10::TensorImpl *tensor_ = nullptr; // null if the entry is free
    const c10::StorageImpl *storage_ = nullptr;
    c10::DispatchKeySet keys_;
    uint32_t epoch_ = 0; // of tensor_identity.h
    uint32_t serial_ = 0;
    uint32_t place_ = 0;
    int32_t offset_elements_ = 0;
    caffe2::TypeMeta dtype_;
    c10::Device device_{c10::DeviceType::CPU};
    uint16_t dimensions_ = 0;
    std::array<Extent, MAX_DIMENSIONS> extents_{};

    friend class TapedTensorCache;
};

class TapedTensorCache
{
  public:
    // Returns the entry in which TENSOR is, or would be.
    TapedTensor &slot_of(const c10::TensorImpl *tensor)
    {
        return slots_[address_hash(tensor) >> (64 - BITS)];
    }

    // Registers SLOT as part of a record that may still be given up.
    void note(const TapedTensor &slot)
    {
        if (new_count_ < new_.size())
            new_[new_count_] = static_cast<uint16_t>(&slot - slots_.get());
        new_count_++;
    }
    // The record is on the tape, so its entries stay.
    void commit()
    {
        new_count_ = 0;
    }
    // The record was given up, so its entries are cleared.
    void roll_back();

  private:
    enum { BITS = 9 };
    static_assert(sizeof(TapedTensor) == 128 &&
                  offsetof(TapedTensor, extents_) <= 64 - 2 * sizeof(TapedTensor::Extent));

    std::unique_ptr<TapedTensor[]> slots_ = std::make_unique<TapedTensor[]>(1 << BITS);
    size_t new_count_ = 0; // may be greater than the size of new_
    std::array<uint16_t, 28> new_;
};

inline bool TapedTensor::holds(const c10::TensorImpl &now, uint32_t serial) const
{
    if (tensor_ != &now || serial_ != serial || epoch_ != their_epoch(tensor_, storage_) ||
        keys_ != now.key_set() || storage_ != now.unsafe_storage().unsafeGetStorageImpl() ||
        now.has_symbolic_sizes_strides() || dtype_ != now.dtype() ||
        device_ != storage_->device() || offset_elements_ != now.storage_offset())
        return false;
    const auto sizes = now.sizes();
    const auto strides = now.strides();
    if (dimensions_ != sizes.size() || dimensions_ != strides.size()) return false;
    for (size_t i = 0; i < dimensions_; i++)
        if (extents_[i].size != sizes[i] || extents_[i].stride != strides[i]) return false;
    return true;
}

} // namespace kpytrace
#endif
