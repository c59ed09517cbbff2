// descriptions.h: tensors as the plugin takes them, with the number that stands for all that is told of one.
// What was told is kept, so that the number alone is told as long as it is true. Of one thread.
#ifndef KPTI_TORCH_DESCRIPTIONS_H
#define KPTI_TORCH_DESCRIPTIONS_H

#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <array>
#include <cstddef>
#include <memory>

#include "identities.h"
#include "kpt.h"

namespace kpytrace
{

class Descriptions
{
  public:
    // The number of TENSOR as it is now; 0: it was not told so.
    uint64_t known(const c10::TensorImpl &tensor) const
    {
        const Told &told = told_[slot_of(&tensor)];
        return told.holds(tensor) ? told.description : 0;
    }

    // All of TO but its elements; sizes and strides are the tensor's own. NUMBER is what is known of it.
    // Throws std::bad_alloc.
    void tell(c10::TensorImpl &tensor, uint64_t number, kpt_tensor &to);

  private:
    enum { MOST_DIMENSIONS = 8, SLOT_BITS = 9 };

    struct Extent {
        int32_t size;
        int32_t stride;
    };

    // Small, so that a thread's are on few pages: what they push out of the processor's caches costs more
    // than to read them. Up to two dimensions it is one line of these.
    struct alignas(64) Told {
        const c10::TensorImpl *tensor = nullptr; // null: none
        const c10::StorageImpl *storage = nullptr;
        c10::DispatchKeySet keys;
        uint64_t description = 0;
        uint32_t epoch = 0; // of the identities
        int32_t offset_elements = 0;
        caffe2::TypeMeta dtype;
        c10::Device device{c10::DeviceType::CPU};
        uint16_t dimensions = 0;
        std::array<Extent, MOST_DIMENSIONS> extents{};

        static bool fits(const kpt_tensor &told);
        bool holds(const c10::TensorImpl &now) const;
        void keep(const c10::TensorImpl &now, const c10::StorageImpl *its_storage,
                  uint32_t now_epoch, const kpt_tensor &told);
    };
    static_assert(sizeof(Told) == 128 && offsetof(Told, extents) <= 64 - 2 * sizeof(Extent));

    static size_t slot_of(const c10::TensorImpl *tensor)
    {
        return Epochs::mixed(tensor) >> (64 - SLOT_BITS);
    }
    static uint64_t new_number(size_t slot);

    std::unique_ptr<Told[]> told_ = std::make_unique<Told[]>(1 << SLOT_BITS);
};

inline bool Descriptions::Told::holds(const c10::TensorImpl &now) const
{
    if (tensor != &now || epoch != their_epoch(tensor, storage) || keys != now.key_set() ||
        storage != now.unsafe_storage().unsafeGetStorageImpl() ||
        now.has_symbolic_sizes_strides() || dtype != now.dtype() || device != storage->device() ||
        offset_elements != now.storage_offset())
        return false;
    const auto its_sizes = now.sizes();
    const auto its_strides = now.strides();
    if (dimensions != its_sizes.size() || dimensions != its_strides.size()) return false;
    for (size_t i = 0; i < dimensions; i++)
        if (extents[i].size != its_sizes[i] || extents[i].stride != its_strides[i]) return false;
    return true;
}

} // namespace kpytrace
#endif
