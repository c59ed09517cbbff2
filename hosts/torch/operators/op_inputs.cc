#include "hosts/torch/operators/op_inputs.h"

#include <c10/core/UndefinedTensorImpl.h>

#include <cstring>

namespace kpytrace
{

namespace
{

enum {
    MAX_NUMBER = 10, // bytes of a number
    MAX_SCALAR = 17,
    MAX_SCALARS = 30, // torch's profiler leaves out longer lists, too
    END_BYTES = KPT_INPUTS_MAX_NESTING + 2
};

bool can_read_sizes(const c10::TensorImpl &tensor)
{
    return &tensor != c10::UndefinedTensorImpl::singleton() &&
           !tensor.has_symbolic_sizes_strides() &&
           !tensor.key_set().has(c10::DispatchKey::NestedTensor);
}

} // namespace

inline void OpInputs::put_number(uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        put_byte(static_cast<uint8_t>(number | 0x80));
    put_byte(static_cast<uint8_t>(number));
}

void OpInputs::put_double(double value)
{
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    for (size_t i = 0; i < sizeof bits; i++)
        put_byte(static_cast<uint8_t>(bits >> (8 * i)));
}

[[gnu::hot]] bool OpInputs::put_tensor(const c10::TensorImpl &tensor)
{
    if (!can_read_sizes(tensor)) {
        if (!has_space(1)) return false;
        put_byte(KPT_INPUT_UNDEFINED);
        return true;
    }
    const auto sizes = tensor.sizes_default();
    const bool has_strides = tensor.has_storage();
    if (!has_space(2 + MAX_NUMBER * (1 + 2 * sizes.size()))) return false;
    put_byte(has_strides ? KPT_INPUT_TENSOR : KPT_INPUT_SIZES);
    put_byte(static_cast<uint8_t>(tensor.dtype().toScalarType()));
    put_number(sizes.size());
    for (const int64_t size : sizes)
        put_number(static_cast<uint64_t>(size));
    if (!has_strides) return true;
    const auto strides = tensor.strides_default();
    for (size_t i = 0; i < sizes.size(); i++)
        put_number(static_cast<uint64_t>(strides[i]));
    return true;
}

bool OpInputs::put_tensors(at::ArrayRef<c10::IValue> tensors)
{
    if (!has_space(1 + MAX_NUMBER)) return false;
    put_byte(KPT_INPUT_TENSORS);
    put_number(tensors.size());
    for (const c10::IValue &tensor : tensors)
        if (!put_tensor(*tensor.toTensor().unsafeGetTensorImpl())) break;
    put_byte(KPT_INPUT_END);
    return true;
}

[[gnu::hot]] bool OpInputs::put_scalar(const c10::IValue &value)
{
    if (!has_space(MAX_SCALAR)) return false;
    if (value.isBool()) {
        put_byte(value.toBool() ? KPT_INPUT_TRUE : KPT_INPUT_FALSE);
    } else if (value.isInt()) {
        const int64_t number = value.toInt();
        put_byte(KPT_INPUT_INT);
        put_number(static_cast<uint64_t>(number) << 1 ^ static_cast<uint64_t>(number >> 63));
    } else if (value.isDouble()) {
        put_byte(KPT_INPUT_DOUBLE);
        put_double(value.toDouble());
    } else if (value.isComplexDouble()) {
        const auto number = value.toComplexDouble();
        put_byte(KPT_INPUT_COMPLEX);
        put_double(number.real());
        put_double(number.imag());
    } else {
        return false;
    }
    return true;
}

bool OpInputs::put_scalars(at::ArrayRef<c10::IValue> scalars)
{
    if (scalars.size() > MAX_SCALARS || !has_space(1 + MAX_SCALAR * scalars.size())) return false;
    put_byte(KPT_INPUT_SCALARS);
    for (const c10::IValue &scalar : scalars)
        (void)put_scalar(scalar); // the list has only scalars
    put_byte(KPT_INPUT_END);
    return true;
}

bool OpInputs::put_list(const c10::IValue &value)
{
    if (value.isTensorList()) return put_tensors(value.toListRef());
    if (value.isIntList() || value.isDoubleList() || value.isBoolList() ||
        value.isComplexDoubleList())
        return put_scalars(value.toListRef());
    return false;
}

bool OpInputs::put_text(std::string_view text)
{
    if (!has_space(1 + MAX_NUMBER + text.size())) return false;
    put_byte(KPT_INPUT_TEXT);
    put_number(text.size());
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
    return true;
}

// Writes OTHER for what it does not describe. There is space for a byte.
void OpInputs::put_value(const c10::IValue &value, int nesting)
{
    if (put_scalar(value) || (value.isString() && put_text(value.toStringRef()))) return;
    if (!value.isList() || nesting == KPT_INPUTS_MAX_NESTING) {
        put_byte(KPT_INPUT_OTHER);
        return;
    }
    put_byte(KPT_INPUT_LIST);
    for (const c10::IValue &item : value.toListRef()) {
        if (!has_space(1)) break;
        put_value(item, nesting + 1);
    }
    put_byte(KPT_INPUT_END);
}

void OpInputs::put_keyword(const std::string &name, const c10::IValue &value)
{
    if (has_space(2 + MAX_NUMBER + name.size()) && put_text(name)) put_value(value, 0);
}

[[gnu::hot]] void OpInputs::put_inputs(at::ArrayRef<const c10::IValue> inputs)
{
    if (!bytes_) {
        bytes_ = std::make_unique<uint8_t[]>(KPT_INPUTS_MOST_BYTES);
        limit_ = bytes_.get() + KPT_INPUTS_MOST_BYTES - END_BYTES;
    }
    at_ = bytes_.get();
    for (const c10::IValue &value : inputs) {
        if (value.isTensor() ? put_tensor(*value.toTensor().unsafeGetTensorImpl())
                             : put_scalar(value) || (value.isList() && put_list(value)))
            continue;
        put_byte(KPT_INPUT_OTHER);
        if (at_ > limit_) break;
    }
}

kpt_str OpInputs::bytes() const
{
    return {reinterpret_cast<const char *>(bytes_.get()),
            static_cast<uint64_t>(at_ - bytes_.get())};
}

kpt_str OpInputs::encode(at::ArrayRef<const c10::IValue> inputs)
{
    put_inputs(inputs);
    return bytes();
}

kpt_str OpInputs::encode_range(at::ArrayRef<const c10::IValue> inputs, const Keywords &keywords)
{
    put_inputs(inputs);
    if (keywords.empty() || !has_space(1)) return bytes();
    put_byte(KPT_INPUT_KEYWORDS);
    for (const auto &[name, value] : keywords)
        put_keyword(name, value);
    put_byte(KPT_INPUT_END);
    return bytes();
}

} // namespace kpytrace
