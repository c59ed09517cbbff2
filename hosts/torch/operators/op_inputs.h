// op_inputs.h: the inputs of an operator or a range as bytes for the plugin (kpt_inputs.h). Neither Python nor an operator runs:
// the sizes of a tensor are those that are stored in it.
#ifndef KPTI_HOSTS_TORCH_OPERATORS_OP_INPUTS_H
#define KPTI_HOSTS_TORCH_OPERATORS_OP_INPUTS_H

#include <ATen/core/ivalue.h>

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "abi/kpt.h"

namespace kpytrace
{

class OpInputs
{
  public:
    using Keywords = std::unordered_map<std::string, c10::IValue>;

    // Encodes INPUTS. The bytes are valid until the next call.
    kpt_str encode(at::ArrayRef<const c10::IValue> inputs);
    // The same with KEYWORDS behind them.
    kpt_str encode_range(at::ArrayRef<const c10::IValue> inputs, const Keywords &keywords);

    // Set while the bytes are in use. Python code, and so other operators, may run meanwhile.
    bool in_use = false;

  private:
    void put_byte(uint8_t byte)
    {
        *at_++ = byte;
    }
    void put_number(uint64_t number);
    void put_double(double value);
    bool has_space(size_t bytes) const
    {
        return static_cast<size_t>(limit_ - at_) >= bytes;
    }
    // Each returns false, and has written nothing, if there is no space, or if it is no such input.
    bool put_tensor(const c10::TensorImpl &tensor);
    bool put_tensors(at::ArrayRef<c10::IValue> tensors);
    bool put_scalar(const c10::IValue &value);
    bool put_scalars(at::ArrayRef<c10::IValue> scalars);
    bool put_list(const c10::IValue &value);
    bool put_text(std::string_view text);
    void put_keyword(const std::string &name, const c10::IValue &value);
    void put_value(const c10::IValue &value, int nesting);
    void put_inputs(at::ArrayRef<const c10::IValue> inputs);
    kpt_str bytes() const;

    std::unique_ptr<uint8_t[]> bytes_;
    uint8_t *at_ = nullptr;
    const uint8_t *limit_ = nullptr; // behind it there is space for all ENDs and an OTHER
};

} // namespace kpytrace
#endif
