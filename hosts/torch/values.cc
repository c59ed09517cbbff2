#include "values.h"

#include "elements.h"
#include "texts.h"

namespace kpytrace
{

namespace
{

enum { MOST_ITEMS = 4097 }; // as many as torch writes of a list
enum { MOST_DEPTH = 64 };

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

// One that was not told before, or is to be told again.
[[gnu::hot, gnu::noinline]] void Values::convert_tensor(const at::Tensor &from, kpt_value &to,
                                                        Detail detail)
{
    auto *given = arena_.take<kpt_tensor>(1);
    to.kind = KPT_VALUE_TENSOR;
    to.tensor = given;
    descriptions_.tell(*from.unsafeGetTensorImpl(), *given);
    if (detail == Detail::ELEMENTS && from.defined()) give_elements(from, *given);
}

[[gnu::hot]] void Values::convert_items(uint32_t kind, at::ArrayRef<c10::IValue> items,
                                        kpt_value &to, Detail detail, int depth)
{
    const size_t count = std::min<size_t>(items.size(), MOST_ITEMS);
    auto *converted = arena_.take<kpt_value>(count);
    to.kind = kind;
    to.item_count = static_cast<uint32_t>(count);
    to.items = converted;
    for (size_t i = 0; i < count; i++)
        convert_one(items[i], converted[i], detail, depth + 1);
}

[[gnu::hot, gnu::noinline]] void Values::convert_other(const c10::IValue &from, kpt_value &to,
                                                       Detail detail, int depth)
{
    if (from.isList() && depth < MOST_DEPTH) {
        convert_items(KPT_VALUE_LIST, from.toListRef(), to, detail, depth);
    } else if (from.isDouble()) {
        to.kind = KPT_VALUE_DOUBLE;
        to.real = from.toDouble();
    } else if (from.isTuple() && depth < MOST_DEPTH) {
        convert_items(KPT_VALUE_TUPLE, from.toTupleRef().elements(), to, detail, depth);
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

// Of a value only what its kind says is filled in.
inline void Values::convert_one(const c10::IValue &from, kpt_value &to, Detail detail, int depth)
{
    if (from.isTensor()) {
        const at::Tensor &tensor = from.toTensor();
        const uint64_t number = descriptions_.known(*tensor.unsafeGetTensorImpl());
        if (number && detail == Detail::DESCRIBED) {
            to.kind = KPT_VALUE_DESCRIBED;
            to.number = static_cast<int64_t>(number);
        } else {
            convert_tensor(tensor, to, detail);
        }
    } else if (from.isNone()) {
        to.kind = KPT_VALUE_NONE;
    } else if (from.isInt()) {
        to.kind = KPT_VALUE_INT;
        to.number = from.toInt();
    } else if (from.isBool()) {
        to.kind = KPT_VALUE_BOOL;
        to.number = from.toBool();
    } else {
        convert_other(from, to, detail, depth);
    }
}

[[gnu::hot]] kpt_value *Values::convert(at::ArrayRef<const c10::IValue> given, Detail detail,
                                        size_t more)
{
    auto *converted = arena_.take<kpt_value>(given.size() + more);
    for (size_t i = 0; i < given.size(); i++)
        convert_one(given[i], converted[i], detail, 0);
    return converted;
}

kpt_str Values::copied(std::string_view text)
{
    char *copy = arena_.take<char>(text.size());
    std::copy(text.begin(), text.end(), copy);
    return {copy, text.size()};
}

} // namespace kpytrace
