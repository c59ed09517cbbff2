// ivalues.h: converts torch's values to the plugin's.
//
// The results are in memory of the thread: values that are made while a Scope lasts are valid until it ends.
// Scopes nest, since an operator may run while another operator is reported. No function here acquires the GIL
// or runs an operator, except for the copy of a device's elements.
#ifndef KPTI_HOSTS_TORCH_EXECUTION_TRACE_IVALUES_H
#define KPTI_HOSTS_TORCH_EXECUTION_TRACE_IVALUES_H

#include <ATen/core/ivalue.h>

#include <string_view>
#include <vector>

#include "abi/kpt.h"
#include "hosts/torch/execution_trace/arena.h"
#include "hosts/torch/operators/text_view.h"

namespace kpytrace
{

class Values
{
  public:
    class Scope
    {
      public:
        explicit Scope(Values &values)
            : values_(values), place_(values.arena_.place()), copies_(values.copies_.size())
        {
        }
        ~Scope()
        {
            values_.arena_.go_back(place_);
            if (values_.copies_.size() > copies_) values_.copies_.resize(copies_);
        }
        Scope(const Scope &) = delete;
        Scope &operator=(const Scope &) = delete;

      private:
        Values &values_;
        Arena::Place place_;
        size_t copies_;
    };

    // Converts GIVEN, with space for MORE values after them. If ELEMENTS is set, the elements of integral
    // tensors are included; those of other devices are copied.
    kpt_value *convert(at::ArrayRef<const c10::IValue> given, bool elements, size_t more = 0);

    kpt_attr *attrs(size_t count)
    {
        return arena_.take<kpt_attr>(count);
    }
    kpt_str copied(std::string_view text);

  private:
    void convert_one(const c10::IValue &from, kpt_value &to, bool elements, int depth);
    void convert_other(const c10::IValue &from, kpt_value &to, bool elements, int depth);
    void convert_items(uint32_t kind, at::ArrayRef<c10::IValue> items, kpt_value &to, bool elements,
                       int depth);
    void convert_tensor(const at::Tensor &from, kpt_value &to, bool elements);
    void give_elements(const at::Tensor &from, kpt_tensor &given);

    Arena arena_;
    std::vector<at::Tensor> copies_;
};

} // namespace kpytrace
#endif
