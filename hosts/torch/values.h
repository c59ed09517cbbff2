// values.h: torch's values as the plugin takes them.
//
// They lie in memory of the thread, which is used again and again: what is made while a Scope lasts holds
// until it ends. Scopes nest, as an operator may run while another one is reported. Nothing here takes the
// GIL or runs an operator, but for the copy of a device's elements.
#ifndef KPTI_TORCH_VALUES_H
#define KPTI_TORCH_VALUES_H

#include <ATen/core/ivalue.h>

#include <memory>
#include <string_view>
#include <vector>

#include "descriptions.h"
#include "kpt.h"
#include "of_thread.h"

namespace kpytrace
{

inline kpt_str view(std::string_view text)
{
    return {text.data(), text.size()};
}

// Arrays of T, taken one after the other and given back in the opposite order.
template <class T> class Stack
{
  public:
    struct Place {
        size_t block = 0;
        size_t used = 0;
    };

    T *take(size_t count)
    {
        while (at_.block < blocks_.size() && blocks_[at_.block].size - at_.used < count) {
            at_.block++;
            at_.used = 0;
        }
        if (at_.block == blocks_.size()) {
            const size_t size = std::max<size_t>(count, ORDINARY);
            blocks_.push_back({std::make_unique<T[]>(size), size});
        }
        T *taken = blocks_[at_.block].items.get() + at_.used;
        at_.used += count;
        return taken;
    }

    Place place() const
    {
        return at_;
    }

    void go_back(Place place)
    {
        at_ = place;
    }

  private:
    enum { ORDINARY = 256 };

    struct Block {
        std::unique_ptr<T[]> items;
        size_t size;
    };

    std::vector<Block> blocks_;
    Place at_;
};

class Values
{
  public:
    // The calling thread's.
    static Values &here()
    {
        return OfThread<Values>::here();
    }

    class Scope
    {
      public:
        explicit Scope(Values &values);
        ~Scope();
        Scope(const Scope &) = delete;
        Scope &operator=(const Scope &) = delete;

      private:
        Values &values_;
        Stack<kpt_value>::Place value_;
        Stack<kpt_attr>::Place attr_;
        Stack<char>::Place text_;
        size_t tensors_;
        size_t first_;
        size_t copies_;
    };

    // GIVEN, with room for MORE behind them.
    kpt_value *convert(at::ArrayRef<const c10::IValue> given, size_t more = 0);

    // Gives the plugin the elements of the integral tensors in this scope; those of other devices copied.
    void give_elements();

    kpt_attr *attrs(size_t count);
    kpt_str copied(std::string_view text);

  private:
    struct Tensor {
        kpt_tensor given;
        const at::Tensor *source;
    };

    void convert_one(const c10::IValue &from, kpt_value &to, int depth);
    void convert_items(uint32_t kind, at::ArrayRef<c10::IValue> items, kpt_value &to, int depth);
    void convert_tensor(const at::Tensor &from, kpt_value &to);
    Tensor &next_tensor();

    Stack<kpt_value> values_;
    Stack<kpt_attr> attrs_;
    Stack<char> texts_;
    std::vector<std::unique_ptr<Tensor>> tensors_;
    size_t tensor_count_ = 0;
    size_t first_tensor_ = 0; // of the innermost scope
    std::vector<at::Tensor> copies_;
    Descriptions descriptions_;
};

} // namespace kpytrace
#endif
