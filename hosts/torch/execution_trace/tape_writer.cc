#include "hosts/torch/execution_trace/tape_writer.h"

#include <c10/core/UndefinedTensorImpl.h>

#include <algorithm>
#include <cstring>

#include "hosts/torch/execution_trace/ivalues.h"

namespace kpytrace
{

namespace
{

// Returns true if the fields of a tensor are valid as they are: it does not wrap another tensor and overrides
// no accessor.
[[gnu::hot]] bool is_plain(const c10::TensorImpl &tensor)
{
    using Key = c10::DispatchKey;
    static constexpr auto keys =
        c10::DispatchKeySet({Key::CPU, Key::CUDA, Key::XPU, Key::MPS, Key::Meta}) |
        c10::DispatchKeySet({Key::Negative, Key::Conjugate, Key::BackendSelect,
                             Key::ADInplaceOrView, Key::AutogradFunctionality}) |
        c10::autocast_dispatch_keyset;
    return tensor.has_storage() && !(tensor.key_set().raw_repr() & ~keys.raw_repr()) &&
           !tensor.has_symbolic_sizes_strides();
}

uint64_t word_of(kpt_tape_value head)
{
    uint64_t word;
    std::memcpy(&word, &head, sizeof word);
    return word;
}

Extents extents_of(const c10::TensorImpl &tensor)
{
    const auto sizes = tensor.sizes();
    return {
        tensor.storage_offset(), tensor.numel(), sizes, {tensor.strides().data(), sizes.size()}};
}

// Returns the bits that are set in any of these numbers.
uint64_t bits_of(const Extents &extents)
{
    auto bits = static_cast<uint64_t>(extents.offset | extents.count);
    for (size_t i = 0; i < extents.sizes.size(); i++)
        bits |= static_cast<uint64_t>(extents.sizes[i] | extents.strides[i]);
    return bits;
}

// Writes offset, count, sizes and strides as numbers of type N.
template <class N> inline void write_numbers(uint64_t *words, const Extents &extents)
{
    const size_t dimensions = extents.sizes.size();
    auto *to = reinterpret_cast<N *>(words);
    to[0] = static_cast<N>(extents.offset);
    to[1] = static_cast<N>(extents.count);
    for (size_t i = 0; i < dimensions; i++) {
        to[2 + i] = static_cast<N>(extents.sizes[i]);
        to[2 + dimensions + i] = static_cast<N>(extents.strides[i]);
    }
}

[[gnu::noinline]] void write_wide(uint64_t *words, const Extents &extents)
{
    write_numbers<uint64_t>(words, extents);
}

} // namespace

// --- words ---------------------------------------------------------------------------------------------

// Returns null if the tape has no space.
inline uint64_t *Tape::take(size_t words)
{
    uint64_t *at = tape_->at;
    if (static_cast<size_t>(tape_->limit - at) < words) return nullptr;
    tape_->at = at + words;
    return at;
}

inline bool Tape::put_head(kpt_tape_value head)
{
    uint64_t *to = take(1);
    if (to) *to = word_of(head);
    return to;
}

inline bool Tape::put_number(uint8_t kind, uint64_t bits)
{
    uint64_t *to = take(2);
    if (!to) return false;
    to[0] = word_of({kind, 0, 0, 0});
    to[1] = bits;
    return true;
}

bool Tape::put_text(uint8_t kind, kpt_str text)
{
    const uint32_t place = tape_->ops->text(tape_, text);
    return (place || !text.size) && put_head({kind, 0, 0, place});
}

[[gnu::hot]] bool Tape::put_device(c10::Device device)
{
    if (device_serial_ != tape_->serial || device_ != device) {
        device_place_ = tape_->ops->text(tape_, device_text(device));
        device_serial_ = device_place_ ? tape_->serial : 0;
        device_ = device;
    }
    return device_place_ && put_head({KPT_VALUE_DEVICE, 0, 0, device_place_});
}

bool Tape::put_bytes(std::string_view text)
{
    const size_t words = (text.size() + sizeof(uint64_t) - 1) / sizeof(uint64_t);
    if (text.size() > UINT32_MAX ||
        !put_head({KPT_VALUE_STRING, 0, 0, static_cast<uint32_t>(text.size())}))
        return false;
    uint64_t *to = take(words);
    if (!to) return false;
    if (words) to[words - 1] = 0; // pads with zeroes, so that equal texts are equal words
    std::copy(text.begin(), text.end(), reinterpret_cast<char *>(to));
    return true;
}

// --- tensors -------------------------------------------------------------------------------------------

[[gnu::noinline]] uint64_t Tape::find_kind(Kind &kind, caffe2::TypeMeta dtype, c10::Device device)
{
    const uint64_t dtype_place = tape_->ops->text(tape_, view(dtype.name()));
    const uint64_t device_place = tape_->ops->text(tape_, device_text(device));
    if (!dtype_place || !device_place) return 0;
    kind = {tape_->serial, dtype, device, dtype_place | device_place << 32};
    return kind.word;
}

// Returns 0 if the tape has no space.
inline uint64_t Tape::kind_of(caffe2::TypeMeta dtype, c10::Device device)
{
    const auto slot = dtype.isScalarType() ? static_cast<size_t>(dtype.toScalarType()) : 0;
    Kind &kind = kinds_[slot % kinds_.size()];
    if (kind.serial == tape_->serial && kind.dtype == dtype && kind.device == device)
        return kind.word;
    return find_kind(kind, dtype, device);
}

[[gnu::hot]] bool Tape::put_undefined(const c10::TensorImpl &tensor)
{
    enum { WORDS = 2 + sizeof(kpt_tape_tensor) / sizeof(uint64_t) };
    if (undefined_serial_ == tape_->serial) return put_head({KPT_TAPE_SAME, 0, 0, undefined_});
    const uint64_t dtype = tape_->ops->text(tape_, view(tensor.dtype().name()));
    uint64_t *to = dtype ? take(WORDS) : nullptr;
    if (!to) return false;
    const std::array<uint64_t, WORDS> words = {word_of({KPT_VALUE_TENSOR, 0, 0, 0}), dtype,
                                               UNDEFINED_TENSOR, 0, 0};
    std::copy(words.begin(), words.end(), to);
    undefined_serial_ = tape_->serial;
    undefined_ = static_cast<uint32_t>(to - tape_->base);
    return true;
}

[[gnu::hot, gnu::noinline]] bool Tape::put_new(c10::TensorImpl &tensor, TapedTensor &slot)
{
    enum { MAX_DIMENSIONS = 1024, FIXED = 1 + sizeof(kpt_tape_tensor) / sizeof(uint64_t) };
    if (&tensor == c10::UndefinedTensorImpl::singleton()) return put_undefined(tensor);
    SlotPrefetch::fetch(&tensor);
    if (!is_plain(tensor)) return false;
    auto *storage = tensor.unsafe_storage().unsafeGetStorageImpl();
    SlotPrefetch::fetch(storage);
    const Extents extents = extents_of(tensor);
    const size_t dimensions = extents.sizes.size();
    if (dimensions > MAX_DIMENSIONS) return false;
    const uint64_t kind = kind_of(tensor.dtype(), storage->device());
    const uint64_t bits = bits_of(extents);
    const bool is_wide = bits >> 32;
    uint64_t *to = kind ? take(FIXED + (1 + dimensions) * (is_wide ? 2 : 1)) : nullptr;
    if (!to) return false;
    const Identity identity = identify(&tensor, storage, gone_);
    const auto flags = static_cast<uint8_t>(is_wide ? KPT_TAPE_WIDE : 0);
    to[0] = word_of({KPT_VALUE_TENSOR, flags, static_cast<uint16_t>(dimensions),
                     static_cast<uint32_t>(tensor.dtype().itemsize())});
    to[1] = kind;
    to[2] = identity.tensor_id;
    to[3] = identity.storage_id;
    if (is_wide)
        write_wide(to + FIXED, extents);
    else
        write_numbers<uint32_t>(to + FIXED, extents);
    if (TapedTensor::may_keep(dimensions, bits)) {
        slot.keep(tensor, storage, extents, identity.epoch, tape_->serial,
                  static_cast<uint32_t>(to - tape_->base));
        taped_.note(slot);
    }
    return true;
}

// --- values --------------------------------------------------------------------------------------------

[[gnu::hot]] bool Tape::put_items(uint8_t kind, at::ArrayRef<c10::IValue> items, int depth)
{
    const size_t count = std::min<size_t>(items.size(), KPT_TAPE_MOST_ITEMS);
    if (depth >= KPT_TAPE_MOST_DEPTH || !put_head({kind, 0, 0, static_cast<uint32_t>(count)}))
        return false;
    for (const c10::IValue &item : items.slice(0, count))
        if (!put_one(item, depth + 1)) return false;
    return true;
}

[[gnu::hot, gnu::noinline]] bool Tape::put_other(const c10::IValue &value, int depth)
{
    if (value.isList()) return put_items(KPT_VALUE_LIST, value.toListRef(), depth);
    if (value.isDouble()) {
        const double number = value.toDouble();
        uint64_t bits;
        std::memcpy(&bits, &number, sizeof bits);
        return put_number(KPT_VALUE_DOUBLE, bits);
    }
    if (value.isTuple()) return put_items(KPT_VALUE_TUPLE, value.toTupleRef().elements(), depth);
    if (value.isString()) return put_bytes(value.toStringRef());
    if (value.isDevice()) return put_device(value.toDevice());
    return put_text(KPT_VALUE_OTHER, view(value.tagKind()));
}

// `flatten` inlines the accessors of torch's values. Once a value's kind is known, the compiler removes most of
// their code.
[[gnu::hot, gnu::flatten]] bool Tape::put_one(const c10::IValue &value, int depth)
{
    if (value.isTensor()) {
        c10::TensorImpl &tensor = *value.toTensor().unsafeGetTensorImpl();
        TapedTensor &slot = taped_.slot_of(&tensor);
        if (slot.holds(tensor, tape_->serial)) return put_head({KPT_TAPE_SAME, 0, 0, slot.place()});
        return put_new(tensor, slot);
    }
    if (value.isNone()) return put_head({KPT_VALUE_NONE, 0, 0, 0});
    if (value.isInt()) return put_number(KPT_VALUE_INT, static_cast<uint64_t>(value.toInt()));
    if (value.isBool()) return put_number(KPT_VALUE_BOOL, value.toBool());
    return put_other(value, depth);
}

[[gnu::hot]] bool Tape::put(Given values)
{
    for (const c10::IValue &value : values)
        if (!put_one(value, 0)) return false;
    return true;
}

// --- operators -----------------------------------------------------------------------------------------

[[gnu::noinline]] uint32_t Tape::find_place(const at::RecordFunction &function, Called &called)
{
    const kpt_op op = common_of(function, *called.texts);
    const uint32_t at = tape_->ops->function(tape_, &op);
    called.place = {op.forward_thread, op.scope, at ? tape_->serial : 0, at};
    return at;
}

// Returns 0 if the tape has no space.
inline uint32_t Tape::place_of(const at::RecordFunction &function, Called &called)
{
    const FunctionPlace &place = called.place;
    if (place.serial == tape_->serial && place.scope == static_cast<uint32_t>(function.scope()) &&
        place.forward_thread == function.forwardThreadId())
        return place.at;
    return find_place(function, called);
}

// The record is not on the tape, so the caches must not refer to it.
void Tape::forget_record()
{
    taped_.roll_back();
    undefined_serial_ = 0;
}

void Tape::give_up()
{
    forget_record();
    tape_->ops->give_up(tape_);
    gone_.release();
}

// Runs WRITE, which returns true if everything is on the tape. Otherwise the record is given up.
template <class Write> inline bool Tape::attempt(Write write)
{
    try {
        if (write()) return true;
    } catch (const std::exception &) { // no memory
    } catch (...) {                    // the thread is being cancelled
        give_up();
        throw;
    }
    give_up();
    return false;
}

[[gnu::hot]] inline bool Tape::write_begin(const at::RecordFunction &function, Called &called,
                                           Given inputs, uint64_t &id)
{
    const uint32_t place = place_of(function, called);
    if (!place || !put(inputs)) return false;
    id = tape_->ops->begun(tape_, place, function.handle(), function.seqNr(),
                           static_cast<uint32_t>(inputs.size()));
    return true;
}

[[gnu::hot]] uint64_t Tape::begin(const at::RecordFunction &function, Called &called, Given inputs)
{
    kpt_tape *const tape = tape_;
    const char *const key = called.key;
    const uint64_t check = called.check;
    uint64_t id = 0;
    // This call may run Python, and other operators in it. CALLED may then belong to another operator, and the
    // tape may be another one.
    if (!tape->ops->begin(tape)) return 0;
    if (tape_ != tape || called.key != key || called.check != check) {
        tape->ops->give_up(tape);
        return 0;
    }
    if (!attempt([&] { return write_begin(function, called, inputs, id); })) return 0;
    if (id)
        taped_.commit();
    else
        forget_record();
    gone_.release();
    return id;
}

[[gnu::hot]] bool Tape::end(uint64_t id, Given outputs)
{
    if (!tape_->ops->end(tape_, id)) return false;
    if (!attempt([&] { return put(outputs); })) return false;
    taped_.commit();
    tape_->ops->ended(tape_, static_cast<uint32_t>(outputs.size()));
    gone_.release();
    return true;
}

} // namespace kpytrace
