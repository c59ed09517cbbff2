#include "values.h"

#include "elements.h"
#include "identities.h"
#include "texts.h"

namespace kpytrace
{

namespace
{

enum { MOST_ITEMS = 4097 }; // as many as torch writes of a list
enum { MOST_DEPTH = 64 };

} // namespace

Values::Scope::Scope(Values &values)
    : values_(values), value_(values.values_.place()), attr_(values.attrs_.place()),
      text_(values.texts_.place()), tensors_(values.tensor_count_),
      first_(std::exchange(values.first_tensor_, values.tensor_count_)),
      copies_(values.copies_.size())
{
}

Values::Scope::~Scope()
{
    values_.values_.go_back(value_);
    values_.attrs_.go_back(attr_);
    values_.texts_.go_back(text_);
    values_.tensor_count_ = tensors_;
    values_.first_tensor_ = first_;
    values_.copies_.resize(copies_);
}

Values::Tensor &Values::next_tensor()
{
    if (tensor_count_ == tensors_.size()) tensors_.push_back(std::make_unique<Tensor>());
    return *tensors_[tensor_count_++];
}

void Values::convert_tensor(const at::Tensor &from, kpt_value &to)
{
    Tensor &tensor = next_tensor();
    kpt_tensor &given = tensor.given;
    c10::TensorImpl *impl = from.unsafeGetTensorImpl();
    to.kind = KPT_VALUE_TENSOR;
    to.tensor = &given;
    tensor.source = &from;
    if (from.defined()) {
        descriptions_.tell(*impl, given);
    } else {
        KPT_INIT(&given);
        given.dtype = view(impl->dtype().name());
        given.tensor_id = UNDEFINED_TENSOR;
    }
}

void Values::convert_items(uint32_t kind, at::ArrayRef<c10::IValue> items, kpt_value &to, int depth)
{
    const size_t count = std::min<size_t>(items.size(), MOST_ITEMS);
    kpt_value *converted = values_.take(count);
    to.kind = kind;
    to.item_count = static_cast<uint32_t>(count);
    to.items = converted;
    for (size_t i = 0; i < count; i++)
        convert_one(items[i], converted[i], depth + 1);
}

void Values::convert_one(const c10::IValue &from, kpt_value &to, int depth)
{
    to = {};
    if (from.isTensor()) {
        convert_tensor(from.toTensor(), to);
    } else if (from.isInt()) {
        to.kind = KPT_VALUE_INT;
        to.number = from.toInt();
    } else if (from.isNone()) {
        to.kind = KPT_VALUE_NONE;
    } else if (from.isBool()) {
        to.kind = KPT_VALUE_BOOL;
        to.number = from.toBool();
    } else if (from.isDouble()) {
        to.kind = KPT_VALUE_DOUBLE;
        to.real = from.toDouble();
    } else if (from.isList() && depth < MOST_DEPTH) {
        convert_items(KPT_VALUE_LIST, from.toListRef(), to, depth);
    } else if (from.isTuple() && depth < MOST_DEPTH) {
        convert_items(KPT_VALUE_TUPLE, from.toTupleRef().elements(), to, depth);
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

kpt_value *Values::convert(at::ArrayRef<const c10::IValue> given, size_t more)
{
    kpt_value *converted = values_.take(given.size() + more);
    for (size_t i = 0; i < given.size(); i++)
        convert_one(given[i], converted[i], 0);
    return converted;
}

void Values::give_elements()
{
    for (size_t i = first_tensor_; i < tensor_count_; i++) {
        Tensor &tensor = *tensors_[i];
        kpt_tensor &given = tensor.given;
        if (!given.storage_id || !given.sizes || !given.strides || !given.element_count) continue;
        given.elements = elements_of(tensor.source->scalar_type());
        if (given.elements == KPT_ELEMENTS_OTHER) continue;
        given.data = elements_here(*tensor.source, given);
        if (!given.data) {
            copies_.push_back(elements_copied(*tensor.source, given));
            given.data = copies_.back().defined() ? copies_.back().const_data_ptr() : nullptr;
        }
    }
}

kpt_attr *Values::attrs(size_t count)
{
    return attrs_.take(count);
}

kpt_str Values::copied(std::string_view text)
{
    char *copy = texts_.take(text.size());
    std::copy(text.begin(), text.end(), copy);
    return {copy, text.size()};
}

} // namespace kpytrace
