#include "hosts/torch/execution_trace/ivalues.h"

#include "hosts/torch/execution_trace/tensor_description.h"
#include "hosts/torch/execution_trace/tensor_elements.h"
#include "hosts/torch/operators/op_texts.h"

namespace kpytrace
{

namespace
{

enum { MAX_DEPTH = 64 };

} // namespace

void Values::give_elements(const at::Tensor &from, kpt_tensor &given)
{
    if (!given.storage_id || !given.sizes || !given.strides || !given.element_count) return;
    given.elements = elements_of(from.scalar_type());
    if (given.elements == KPT_ELEMENTS_OTHER) return;
    given.data = elements_here(from, given);
    if (!given.data) {
        copies_.push_back(elements_copied(from, given));
        given.data = copies_.back().defined() ? copies_.back().const_data_ptr() : nullptr;
    }
}

void Values::convert_tensor(const at::Tensor &from, kpt_value &to, bool elements)
{
    auto *given = arena_.take<kpt_tensor>(1);
    to.kind = KPT_VALUE_TENSOR;
    to.tensor = given;
    describe(*from.unsafeGetTensorImpl(), *given);
    if (elements && from.defined()) give_elements(from, *given);
}

void Values::convert_items(uint32_t kind, at::ArrayRef<c10::IValue> items, kpt_value &to,
                           bool elements, int depth)
{
    const size_t count = std::min<size_t>(items.size(), KPT_TAPE_MOST_ITEMS);
    auto *converted = arena_.take<kpt_value>(count);
    to.kind = kind;
    to.item_count = static_cast<uint32_t>(count);
    to.items = converted;
    for (size_t i = 0; i < count; i++)
        convert_one(items[i], converted[i], elements, depth + 1);
}

void Values::convert_other(const c10::IValue &from, kpt_value &to, bool elements, int depth)
{
    if (from.isList() && depth < MAX_DEPTH) {
        convert_items(KPT_VALUE_LIST, from.toListRef(), to, elements, depth);
    } else if (from.isDouble()) {
        to.kind = KPT_VALUE_DOUBLE;
        to.real = from.toDouble();
    } else if (from.isTuple() && depth < MAX_DEPTH) {
        convert_items(KPT_VALUE_TUPLE, from.toTupleRef().elements(), to, elements, depth);
    } else if (from.isString()) {
        to.kind = KPT_VALUE_STRING;
        to.text = view(from.toStringRef());
    } else if (from.isDevice()) {
        to.kind = KPT_VALUE_DEVICE;
        to.text = device_text(from.toDevice());
    } else {
        to.kind = KPT_VALUE_OTHER;
        to.text = copied(from.tagKind());
    }
}

// Only the fields that belong to the value's kind are filled in.
void Values::convert_one(const c10::IValue &from, kpt_value &to, bool elements, int depth)
{
    if (from.isTensor()) {
        convert_tensor(from.toTensor(), to, elements);
    } else if (from.isNone()) {
        to.kind = KPT_VALUE_NONE;
    } else if (from.isInt()) {
        to.kind = KPT_VALUE_INT;
        to.number = from.toInt();
    } else if (from.isBool()) {
        to.kind = KPT_VALUE_BOOL;
        to.number = from.toBool();
    } else {
        convert_other(from, to, elements, depth);
    }
}

kpt_value *Values::convert(at::ArrayRef<const c10::IValue> given, bool elements, size_t more)
{
    auto *converted = arena_.take<kpt_value>(given.size() + more);
    for (size_t i = 0; i < given.size(); i++)
        convert_one(given[i], converted[i], elements, 0);
    return converted;
}

kpt_str Values::copied(std::string_view text)
{
    char *copy = arena_.take<char>(text.size());
    std::copy(text.begin(), text.end(), copy);
    return {copy, text.size()};
}

} // namespace kpytrace
