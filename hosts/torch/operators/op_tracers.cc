#include "hosts/torch/operators/op_tracers.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string_view>

#include "hosts/torch/common/function_kind.h"
#include "hosts/torch/operators/op_caller.h"
#include "hosts/torch/operators/op_texts.h"
#include "hosts/torch/operators/text_view.h"

namespace kpytrace
{

namespace
{

std::array<std::atomic<kpt_handle>, MAX_OP_TRACERS> op_tracers{};
std::atomic<uint32_t> with_inputs{0};    // the slots whose tracers receive inputs, as bits
std::atomic<uint32_t> op_tracers_end{0}; // slots from here on are 0
std::atomic<const kpt_tracer_ops *> op_tracer_ops{
    nullptr};               // all tracers are of one plugin and have the same
std::mutex op_tracers_lock; // acquired only to add and remove a tracer

// Returns the plugin's number for an operator, which the operator's texts keep. A number of another scope is asked for
// again. Returns 0 if there is none.
uint32_t number_of(kpt_handle tracer, const FunctionTexts &texts, uint32_t scope)
{
    std::atomic_ref<uint64_t> kept(texts.numbered);
    const uint64_t known = kept.load(std::memory_order_relaxed);
    uint32_t number = static_cast<uint32_t>(known);
    if (number && known >> 32 == scope) return number;
    if (op_tracer_ops.load()->name_operator(tracer, texts.name, scope, &number) != KPT_OK) return 0;
    kept.store(static_cast<uint64_t>(scope) << 32 | number, std::memory_order_relaxed);
    return number;
}

// The forward of a torch.autograd.Function has no schema either. It begins and ends in one call, and its sequence number
// links it with its node.
bool is_traced_as_range(const at::RecordFunction &function)
{
    return is_range(function) &&
           (function.scope() == at::RecordScope::USER_SCOPE || function.seqNr() < 0);
}

uint32_t scope_of(const at::RecordFunction &function)
{
    return std::min<uint32_t>(static_cast<uint32_t>(function.scope()), KPT_SCOPE_MAX);
}

kpt_operator operator_of(const at::RecordFunction &function)
{
    kpt_operator op;
    op.struct_size = sizeof op;
    op.flags = op.name = op.scope = 0;
    op.text = {};
    op.sequence_plus_1 = function.seqNr() >= 0 ? static_cast<uint64_t>(function.seqNr()) + 1 : 0;
    op.forward_thread = function.forwardThreadId();
    op.record_id = function.handle();
    op.thread = function.threadId();
    op.inputs = {};
    return op;
}

// Sets the name or the text of OP. KNOWN keeps the number of an operator of the dispatcher, whose name stays where it is.
[[gnu::noinline]] void name_op(const at::RecordFunction &function, kpt_handle tracer,
                               uint32_t check, OpCaller::Numbered &known, kpt_operator &op)
{
    if (is_traced_as_range(function)) {
        op.text = view(std::string_view(function.name()));
        op.scope = scope_of(function);
        op.flags = function.isAsync() ? KPT_OPERATOR_ASYNC : 0;
        if (!op.text.size) op.text = kpt_str_of("<range>");
        return;
    }
    const Called &called = called_of(function);
    op.name = number_of(tracer, *called.texts, scope_of(function));
    if (op.name && called.key == function.name()) known = {called.key, op.name, check};
}

// Returns the inputs of FUNCTION itself. A boxed call has the whole stack.
at::ArrayRef<const c10::IValue> own_inputs(const at::RecordFunction &function)
{
    const auto given = function.inputs();
    const size_t count = called_of(function).inputs;
    return given.size() > count ? given.slice(given.size() - count) : given;
}

// The inputs of an operator, as bytes. They are those of the thread, unless it encodes the inputs of an operator around
// this one, which began while a tracer ran Python.
class UsedInputs
{
  public:
    UsedInputs(OpCaller &caller, const at::RecordFunction &function, bool are_wanted)
        : buffer_(caller.inputs().in_use ? own_ : caller.inputs())
    {
        if (!are_wanted || is_traced_as_range(function)) return;
        bytes_ = buffer_.encode(own_inputs(function));
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

bool add_op_tracer(const kpt_tracer &tracer, bool wants_inputs)
{
    if (!KPT_HAS(tracer.ops, kpt_tracer_ops, end_operator)) return false;
    OpCaller::prepare();
    std::lock_guard<std::mutex> guard(op_tracers_lock);
    for (uint32_t i = 0; i < MAX_OP_TRACERS; i++) {
        if (op_tracers[i]) continue;
        op_tracer_ops = tracer.ops;
        if (wants_inputs) with_inputs |= 1U << i;
        op_tracers[i] = tracer.self;
        op_tracers_end = std::max(op_tracers_end.load(), i + 1);
        return true;
    }
    return false;
}

void remove_op_tracer(kpt_handle tracer)
{
    std::lock_guard<std::mutex> guard(op_tracers_lock);
    for (uint32_t i = 0; i < MAX_OP_TRACERS; i++) {
        if (op_tracers[i] != tracer) continue;
        op_tracers[i] = 0;
        with_inputs &= ~(1U << i);
    }
    while (op_tracers_end && !op_tracers[op_tracers_end - 1])
        op_tracers_end--;
    OpCaller::wait_for_others();
}

bool has_op_tracers()
{
    return op_tracers_end.load(std::memory_order_relaxed) != 0;
}

bool op_tracers_want_inputs()
{
    return with_inputs.load(std::memory_order_relaxed) != 0;
}

void op_tracers_forked()
{
    with_inputs = 0;
    for (auto &slot : op_tracers)
        slot = 0;
    op_tracers_end = 0;
    OpCaller::forked();
    new (&op_tracers_lock) std::mutex;
}

[[gnu::hot]] void trace_begin(const at::RecordFunction &function, TracedOp &out, bool has_inputs)
{
    if (!has_op_tracers()) return;
    OpCaller &caller = OpCaller::here();
    const InOpCall inside(caller);
    const UsedInputs inputs(caller, function, has_inputs && op_tracers_want_inputs());
    const uint64_t removals = operator_removals.load(std::memory_order_acquire);
    const uint32_t check =
        static_cast<uint32_t>(removals << 8) | static_cast<uint8_t>(function.scope());
    const char *const key = function.name();
    OpCaller::Numbered &known = caller.numbered(key);
    kpt_operator op = operator_of(function);
    if (known.key == key && known.check == check) op.name = known.number;
    const uint32_t end = op_tracers_end.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < end; i++) {
        const kpt_handle tracer = op_tracers[i].load(std::memory_order_acquire);
        uint64_t token = 0;
        if (!tracer) continue;
        if (!op.name && !op.text.size) name_op(function, tracer, check, known, op);
        op.inputs =
            with_inputs.load(std::memory_order_relaxed) >> i & 1 ? inputs.bytes() : kpt_str{};
        if (op_tracer_ops.load(std::memory_order_acquire)->begin_operator(tracer, &op, &token) ==
                KPT_OK &&
            token)
            out.tokens[out.count++] = {tracer, token};
    }
}

[[gnu::hot]] void trace_end(const TracedOp &op)
{
    if (!op.count) return;
    const InOpCall inside(OpCaller::here());
    const uint32_t end = op_tracers_end.load(std::memory_order_relaxed);
    for (uint32_t i = 0; i < op.count; i++)
        for (uint32_t k = 0; k < end; k++) // it may have been removed since
            if (op_tracers[k].load(std::memory_order_acquire) == op.tokens[i].tracer)
                (void)op_tracer_ops.load(std::memory_order_acquire)
                    ->end_operator(op.tokens[i].tracer, op.tokens[i].token);
}

} // namespace kpytrace
