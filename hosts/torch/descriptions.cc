#include "descriptions.h"

#include <algorithm>
#include <atomic>

#include "identities.h"
#include "texts.h"
#include "values.h"

namespace kpytrace
{

namespace
{

// What torch's own observer writes of a tensor whose sizes are not numbers, or of a nested one's: nothing
// but its type. Those of a Python subclass are asked for in Python, unless one takes what is stored.
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

void describe(const c10::TensorImpl &impl, kpt_tensor &to)
{
    const bool has_storage = impl.has_storage();
    const bool as_stored = !has_storage || impl.is_python_dispatch();
    to.dimensions = 1; // of which nothing is known
    to.dtype = view(impl.dtype().name());
    if (!has_sizes(impl)) return;
    describe_sizes(impl, as_stored, to);
    if (!has_storage) return;
    to.offset_elements = as_stored ? impl.storage_offset_default() : impl.storage_offset();
    to.element_count = as_stored ? impl.numel_default() : impl.numel();
    to.element_bytes = impl.dtype().itemsize();
    to.device = device_text(impl.unsafe_storage().device());
}

// Whether all that was told of it can be asked again, without a call.
bool is_plain(const c10::TensorImpl &impl, const kpt_tensor &told)
{
    return impl.has_storage() && !impl.is_python_dispatch() && told.sizes && told.strides &&
           told.device.size;
}

uint64_t new_description()
{
    static std::atomic<uint64_t> last{0};
    return ++last;
}

} // namespace

bool Descriptions::Told::fits(const kpt_tensor &told)
{
    const auto is_small = [](int64_t number) { return number == static_cast<int32_t>(number); };
    return told.dimensions <= MOST_DIMENSIONS && told.dtype.size <= UINT8_MAX &&
           told.device.size <= UINT8_MAX &&
           std::all_of(told.sizes, told.sizes + told.dimensions, is_small) &&
           std::all_of(told.strides, told.strides + told.dimensions, is_small);
}

bool Descriptions::Told::holds(const c10::TensorImpl &now) const
{
    if (tensor != &now || epoch != their_epoch(tensor, storage) || keys != now.key_set() ||
        now.has_symbolic_sizes_strides() || storage != now.unsafe_storage().unsafeGetStorageImpl())
        return false;
    const auto its_sizes = now.sizes();
    const auto its_strides = now.strides();
    return dtype == now.dtype() && device == storage->device() &&
           offset_elements == now.storage_offset() && element_count == now.numel() &&
           dimensions == its_sizes.size() && dimensions == its_strides.size() &&
           std::equal(its_sizes.begin(), its_sizes.end(), sizes.begin()) &&
           std::equal(its_strides.begin(), its_strides.end(), strides.begin());
}

void Descriptions::Told::keep(c10::TensorImpl &now, c10::StorageImpl *its_storage,
                              uint64_t now_epoch, const kpt_tensor &told)
{
    tensor = &now;
    storage = its_storage;
    epoch = now_epoch;
    keys = now.key_set();
    dtype = now.dtype();
    device = its_storage->device();
    dimensions = static_cast<uint8_t>(told.dimensions);
    offset_elements = told.offset_elements;
    element_count = told.element_count;
    tensor_id = told.tensor_id;
    storage_id = told.storage_id;
    description = told.description;
    dtype_text = told.dtype.data;
    dtype_size = static_cast<uint8_t>(told.dtype.size);
    device_text = told.device.data;
    device_size = static_cast<uint8_t>(told.device.size);
    const auto narrow = [](int64_t number) { return static_cast<int32_t>(number); };
    std::transform(told.sizes, told.sizes + dimensions, sizes.begin(), narrow);
    std::transform(told.strides, told.strides + dimensions, strides.begin(), narrow);
}

void Descriptions::Told::tell(const c10::TensorImpl &now, kpt_tensor &to) const
{
    to.dimensions = dimensions;
    to.tensor_id = tensor_id;
    to.storage_id = storage_id;
    to.offset_elements = offset_elements;
    to.element_count = element_count;
    to.element_bytes = dtype.itemsize();
    to.sizes = now.sizes().data();
    to.strides = now.strides().data();
    to.dtype = {dtype_text, dtype_size};
    to.device = {device_text, device_size};
    to.description = description;
}

void Descriptions::tell(c10::TensorImpl &tensor, kpt_tensor &to)
{
    const auto mixed = reinterpret_cast<uintptr_t>(&tensor) * UINT64_C(0x9E3779B97F4A7C15);
    Told &told = told_[(mixed >> 40) % KEPT];
    KPT_INIT(&to);
    try {
        if (told.holds(tensor)) {
            told.tell(tensor, to);
            return;
        }
        describe(tensor, to);
    } catch (const std::exception &) { // a kind of tensor that refuses
        to.dimensions = 1;
        to.sizes = to.strides = nullptr;
    }
    auto *storage = to.device.size ? tensor.unsafe_storage().unsafeGetStorageImpl() : nullptr;
    const Identity identity = identify(&tensor, storage);
    to.tensor_id = identity.tensor_id;
    to.storage_id = identity.storage_id;
    if (!is_plain(tensor, to) || !Told::fits(to)) return;
    to.description = new_description();
    told.keep(tensor, storage, identity.epoch, to);
}

} // namespace kpytrace
