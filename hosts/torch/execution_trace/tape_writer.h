// tape_writer.h: writes operators onto an observer's tape, in one pass over torch's values. Used by one thread.
//
// Only tensors whose fields can be read directly are written, so that no Python and no operator runs meanwhile.
// An operator with other tensors, or for which the tape has no space, is passed to begin_op and end_op, which
// accept everything.
#ifndef KPTI_HOSTS_TORCH_EXECUTION_TRACE_TAPE_WRITER_H
#define KPTI_HOSTS_TORCH_EXECUTION_TRACE_TAPE_WRITER_H

#include <ATen/core/ivalue.h>

#include <array>

#include "abi/kpt.h"
#include "hosts/torch/execution_trace/tape_tensor_cache.h"
#include "hosts/torch/operators/op_texts.h"

namespace kpytrace
{

class Tape
{
  public:
    using Given = at::ArrayRef<const c10::IValue>;

    // Selects the tape to write to from now on, or null for none.
    void set(kpt_tape *tape)
    {
        tape_ = tape;
    }
    const kpt_tape *get() const
    {
        return tape_;
    }

    // Returns the operator's number, or 0 if it is not on the tape. A tape must be set, and CALLED must have a
    // key.
    uint64_t begin(const at::RecordFunction &function, Called &called, Given inputs);
    // Returns false if the end is not on the tape.
    bool end(uint64_t id, Given outputs);

  private:
    // The texts of a tensor's type and device, packed in one word.
    struct Kind {
        uint32_t serial = 0; // 0 if the entry is free
        caffe2::TypeMeta dtype;
        c10::Device device{c10::DeviceType::CPU};
        uint64_t word = 0;
    };

    // Each returns false if the values are not on the tape.
    bool put(Given values);
    bool put_one(const c10::IValue &value, int depth);
    bool put_other(const c10::IValue &value, int depth);
    bool put_items(uint8_t kind, at::ArrayRef<c10::IValue> items, int depth);
    bool put_text(uint8_t kind, kpt_str text);
    bool put_device(c10::Device device);
    bool put_bytes(std::string_view text);
    bool put_undefined(const c10::TensorImpl &tensor);
    bool put_new(c10::TensorImpl &tensor, TapedTensor &slot);

    bool put_head(kpt_tape_value head);
    bool put_number(uint8_t kind, uint64_t bits);
    uint64_t *take(size_t words);

    uint64_t kind_of(caffe2::TypeMeta dtype, c10::Device device);
    uint64_t find_kind(Kind &kind, caffe2::TypeMeta dtype, c10::Device device);
    uint32_t place_of(const at::RecordFunction &function, Called &called);
    uint32_t find_place(const at::RecordFunction &function, Called &called);
    bool write_begin(const at::RecordFunction &function, Called &called, Given inputs,
                     uint64_t &id);
    template <class Write> bool attempt(Write write);
    void forget_record();
    void give_up();

    kpt_tape *tape_ = nullptr;
    TapedTensorCache taped_;
    DeadRefs gone_;                 // references to release; empty while no tape is open
    uint32_t undefined_serial_ = 0; // of the tape that has the undefined tensor
    uint32_t undefined_ = 0;        // its position there
    uint32_t device_serial_ = 0;    // of the tape that has the text of device_
    uint32_t device_place_ = 0;     // its position there
    c10::Device device_{c10::DeviceType::CPU};
    std::array<Kind, 16> kinds_{};
};

} // namespace kpytrace
#endif
