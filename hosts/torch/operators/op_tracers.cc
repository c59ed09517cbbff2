#include "hosts/torch/operators/op_tracers.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string_view>

#include "hosts/torch/common/function_kind.h"
#include "hosts/torch/operators/op_caller.h"
#include "hosts/torch/operators/op_fields.h"
#include "hosts/torch/operators/op_texts.h"
#include "hosts/torch/operators/text_view.h"

namespace kpytrace
{

namespace
{

std::mutex op_tracers_lock; // acquired only to add and remove a tracer

uint32_t scope_of(const at::RecordFunction &function)
{
    return std::min<uint32_t>(static_cast<uint32_t>(function.scope()), KPT_SCOPE_MAX);
}

// Returns the plugin's number for an operator, which the operator's texts keep. A number of another scope is asked for
// again. Returns 0 if there is none.
uint32_t number_of(const OpTracer &slot, kpt_handle tracer, const FunctionTexts &texts,
                   uint32_t scope)
{
    std::atomic_ref<uint64_t> kept(texts.numbered);
    const uint64_t known = kept.load(std::memory_order_relaxed);
    uint32_t number = static_cast<uint32_t>(known);
    if (number && known >> 32 == scope) return number;
    if (slot.name(tracer, texts.name, scope, &number) != KPT_OK) return 0;
    kept.store(static_cast<uint64_t>(scope) << 32 | number, std::memory_order_relaxed);
    return number;
}

} // namespace

[[gnu::hot]] uint32_t number_of_node(const OpTracer &slot, kpt_handle tracer,
                                     const at::RecordFunction &function)
{
    if (function.scope() != at::RecordScope::BACKWARD_FUNCTION &&
        (function.scope() != at::RecordScope::FUNCTION || !is_of_autograd(function)))
        return 0;
    return number_of(slot, tracer, texts_of_node(function.name()), scope_of(function));
}

namespace
{

// The forward of a torch.autograd.Function has no schema either. It begins and ends in one call, and its sequence number
// links it with its node.
bool is_traced_as_range(const at::RecordFunction &function)
{
    return is_range(function) &&
           (function.scope() == at::RecordScope::USER_SCOPE || function.seqNr() < 0);
}

// Whether Python has called the range an annotation, in the keywords of _RecordFunctionFast, which torch passes with inputs.
bool is_called_annotation(const at::RecordFunction &function)
{
    const auto keywords = function.kwinputs();
    const auto found = keywords.find("scope");
    return found != keywords.end() && found->second.isString() &&
           found->second.toStringRef() == "user_scope";
}

// Sets the name or the text of OP. KNOWN keeps the number of an operator of the dispatcher, whose name stays where it is.
[[gnu::noinline]] void name_op(const at::RecordFunction &function, const OpTracer &slot,
                               kpt_handle tracer, uint32_t check, OpCaller::Numbered &known,
                               kpt_operator &op)
{
    if (is_traced_as_range(function)) {
        op.text = view(std::string_view(function.name()));
        op.scope = is_called_annotation(function) ? KPT_SCOPE_USER : scope_of(function);
        op.flags = function.isAsync() ? KPT_OPERATOR_ASYNC : 0;
        if (!op.text.size) op.text = kpt_str_of("<range>");
        return;
    }
    const Called &called = called_of(function);
    op.name = number_of(slot, tracer, *called.texts, scope_of(function));
    if (op.name && called.key == function.name()) known.keep(called.key, op.name, check);
}

// Returns the inputs of FUNCTION itself. A boxed call has the whole stack.
at::ArrayRef<const c10::IValue> own_inputs(const at::RecordFunction &function)
{
    const auto given = function.inputs();
    const size_t count = called_of(function).inputs;
    return given.size() > count ? given.slice(given.size() - count) : given;
}

// The inputs of an operator or a range, as bytes. They are those of the thread, unless it encodes the inputs of one around
// this one, which began while a tracer ran Python.
class UsedInputs
{
  public:
    UsedInputs(OpCaller &caller, const at::RecordFunction &function, bool are_wanted)
        : buffer_(caller.inputs().in_use ? own_ : caller.inputs())
    {
        if (!are_wanted) return;
        bytes_ = is_traced_as_range(function)
                     ? buffer_.encode_range(function.inputs(), function.kwinputs())
                     : buffer_.encode(own_inputs(function));
        buffer_.in_use = true;
    }
    ~UsedInputs()
    {
        if (bytes_.data) buffer_.in_use = false;
    }
    UsedInputs(const UsedInputs &) = delete;
    UsedInputs &operator=(const UsedInputs &) = delete;

    kpt_str bytes() const
    {
        return bytes_;
    }

  private:
    OpInputs own_;
    OpInputs &buffer_;
    kpt_str bytes_{};
};

} // namespace

bool add_op_tracer(const kpt_tracer &tracer, bool wants_inputs, const ThreadState *mark)
{
    if (!KPT_HAS(tracer.ops, kpt_tracer_ops, end_operator)) return false;
    OpCaller::prepare();
    std::lock_guard<std::mutex> guard(op_tracers_lock);
    for (uint32_t i = 0; i < MAX_OP_TRACERS; i++) {
        OpTracer &slot = op_hot.tracers[i];
        if (slot.tracer) continue;
        slot.begin = tracer.ops->begin_operator;
        slot.end = tracer.ops->end_operator;
        slot.name = tracer.ops->name_operator;
        slot.mark = mark;
        if (wants_inputs) op_hot.with_inputs |= static_cast<uint8_t>(1U << i);
        slot.tracer = tracer.self;
        op_hot.tracers_end = std::max(op_hot.tracers_end.load(), i + 1);
        return true;
    }
    return false;
}

void remove_op_tracer(kpt_handle tracer)
{
    std::lock_guard<std::mutex> guard(op_tracers_lock);
    for (uint32_t i = 0; i < MAX_OP_TRACERS; i++) {
        if (op_hot.tracers[i].tracer != tracer) continue;
        op_hot.tracers[i].tracer = 0;
        op_hot.with_inputs &= static_cast<uint8_t>(~(1U << i));
    }
    while (op_hot.tracers_end && !op_hot.tracers[op_hot.tracers_end - 1].tracer)
        op_hot.tracers_end--;
    OpCaller::wait_for_others();
}

bool has_op_tracers()
{
    return op_hot.tracers_end.load(std::memory_order_relaxed) != 0;
}

bool op_tracers_want_inputs()
{
    return op_hot.with_inputs.load(std::memory_order_relaxed) != 0;
}

void op_tracers_forked()
{
    op_hot.with_inputs = 0;
    for (auto &slot : op_hot.tracers)
        slot.tracer = 0;
    op_hot.tracers_end = 0;
    OpCaller::forked();
    new (&op_tracers_lock) std::mutex;
}

void trace_begin(const at::RecordFunction &function, TracedOp &out, bool has_inputs)
{
    if (!has_op_tracers()) return;
    OpCaller &caller = OpCaller::here();
    const InOpCall inside(caller);
    const UsedInputs inputs(caller, function, has_inputs && op_tracers_want_inputs());
    const uint32_t check = number_check(function);
    OpCaller::Numbered &known = caller.numbered(function.name());
    kpt_operator op = operator_of(function, known.number_of(function.name(), check));
    const uint32_t end = op_hot.tracers_end.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < end; i++) {
        const OpTracer &slot = op_hot.tracers[i];
        const kpt_handle tracer = slot.tracer.load(std::memory_order_acquire);
        uint64_t token = 0;
        if (!tracer || !receives_here(slot)) continue;
        if (!op.name && !op.text.size) name_op(function, slot, tracer, check, known, op);
        op.inputs = op_hot.with_inputs.load(std::memory_order_relaxed) >> i & 1 ? inputs.bytes()
                                                                                : kpt_str{};
        if (slot.begin(tracer, &op, &token) == KPT_OK && token)
            out.tokens[out.count++] = {tracer, token};
    }
}

void trace_end(const TracedOp &op)
{
    if (!op.count) return;
    const InOpCall inside(OpCaller::here());
    for (uint32_t i = 0; i < op.count; i++)
        end_for_tracer(op.tokens[i].tracer, op.tokens[i].token);
}

} // namespace kpytrace
