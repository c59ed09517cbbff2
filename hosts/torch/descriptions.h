// descriptions.h: tensors as the plugin takes them. What was told of a tensor is kept, and told again with
// the same number as long as it is true, so that the plugin needs not look. Of one thread.
#ifndef KPTI_TORCH_DESCRIPTIONS_H
#define KPTI_TORCH_DESCRIPTIONS_H

#include <c10/core/StorageImpl.h>
#include <c10/core/TensorImpl.h>

#include <array>
#include <memory>

#include "kpt.h"

namespace kpytrace
{

class Descriptions
{
  public:
    // All of TO but its elements; sizes and strides are the tensor's own. Throws std::bad_alloc.
    void tell(c10::TensorImpl &tensor, kpt_tensor &to);

  private:
    enum { MOST_DIMENSIONS = 4, KEPT = 512 };

    // Small, so that a thread's are on few pages: what they push out of the processor's caches costs more
    // than to read them.
    struct Told {
        c10::TensorImpl *tensor = nullptr; // null: none
        uint64_t epoch = 0;                // of the identities
        c10::DispatchKeySet keys;
        c10::StorageImpl *storage = nullptr;
        caffe2::TypeMeta dtype;
        c10::Device device{c10::DeviceType::CPU};
        uint8_t dimensions = 0;
        uint8_t dtype_size = 0; // of the texts
        uint8_t device_size = 0;
        const char *dtype_text = nullptr;
        const char *device_text = nullptr;
        int64_t offset_elements = 0;
        int64_t element_count = 0;
        uint64_t tensor_id = 0;
        uint64_t storage_id = 0;
        uint64_t description = 0;
        std::array<int32_t, MOST_DIMENSIONS> sizes{};
        std::array<int32_t, MOST_DIMENSIONS> strides{};

        static bool fits(const kpt_tensor &told);
        bool holds(const c10::TensorImpl &now) const;
        void keep(c10::TensorImpl &now, c10::StorageImpl *its_storage, uint64_t now_epoch,
                  const kpt_tensor &told);
        void tell(const c10::TensorImpl &now, kpt_tensor &to) const;
    };
    static_assert(sizeof(Told) == 128, "two lines of the cache");

    std::unique_ptr<Told[]> told_ = std::make_unique<Told[]>(KEPT);
};

} // namespace kpytrace
#endif
