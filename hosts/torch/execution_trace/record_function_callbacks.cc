#include "hosts/torch/execution_trace/record_function_callbacks.h"

#include <ATen/record_function.h>
#include <Python.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <mutex>

#include "hosts/torch/execution_trace/collectives.h"
#include "hosts/torch/execution_trace/ivalues.h"
#include "hosts/torch/execution_trace/op_context.h"
#include "hosts/torch/execution_trace/tape_writer.h"
#include "hosts/torch/execution_trace/tensor_identity.h"
#include "hosts/torch/operators/op_caller.h"
#include "hosts/torch/operators/op_fast_path.h"
#include "hosts/torch/operators/op_texts.h"
#include "hosts/torch/operators/op_tracers.h"

namespace kpytrace
{

namespace
{

// The observers that receive operators. Slots up to active_end may be in use or null.
std::array<std::atomic<const PluginObserver *>, MAX_OBSERVERS> active_observers{};
std::atomic<size_t> active_end{0};

// Acquired only by the functions that begin and end. torch's own lock is acquired under it.
std::mutex active_lock;
at::CallbackHandle callback_handle = at::INVALID_CALLBACK_HANDLE;

// Returns the last COUNT values. On a stack of boxed values these are the function's own.
at::ArrayRef<const c10::IValue> last_of(at::ArrayRef<const c10::IValue> given, size_t count)
{
    return given.size() > count ? given.slice(given.size() - count) : given;
}

std::string_view base_name(std::string_view path)
{
    return path.substr(path.rfind('/') + 1); // the whole path if there is no slash
}

// Adds a compiler's data on a kernel, beside its arguments. The stream follows the arguments.
void add_kernel(const at::RecordFunction &function, Values &values, kpt_op &op, kpt_value *capacity)
{
    const auto said = function.kwinputs();
    const auto text_of = [&said](const char *name) -> std::string_view {
        const auto found = said.find(name);
        return found != said.end() && found->second.isString() ? found->second.toStringRef()
                                                               : std::string_view();
    };
    if (said.empty()) return;
    op.kernel_backend = values.copied(text_of("kernel_backend"));
    op.kernel_file = values.copied(base_name(text_of("kernel_file")));
    const auto stream = said.find("stream");
    if (text_of("kernel_backend") != "triton" || stream == said.end() || !stream->second.isInt())
        return;
    *capacity = {};
    capacity->kind = KPT_VALUE_STREAM;
    capacity->number = stream->second.toInt();
    op.value_count++;
}

[[gnu::noinline]] bool has_keywords(const at::RecordFunction &function)
{
    return !function.kwinputs().empty();
}

// Returns true if an operator's values are all there is to record of FUNCTION.
bool has_only_values(const at::RecordFunction &function, const Called &called)
{
    return !function.isNcclMeta() &&
           (called.has_schema || function.scope() == at::RecordScope::BACKWARD_FUNCTION ||
            !has_keywords(function));
}

kpt_op described(const at::RecordFunction &function, const FunctionTexts &texts, Values &values)
{
    kpt_op op = common_of(function, texts);
    op.record_id = function.handle();
    op.sequence = function.seqNr();
    if (function.isNcclMeta()) {
        const auto attrs = collective_attrs(values);
        op.attrs = attrs.data();
        op.attr_count = attrs.size();
    }
    return op;
}

// Returns the operator's number for OBSERVER, or 0 if it is not recorded.
uint64_t begin_for(const PluginObserver &observer, const at::RecordFunction &function,
                   at::ArrayRef<const c10::IValue> inputs, Values &values, kpt_op op)
{
    const kpt_observer &to = observer.plugins();
    kpt_value *converted = values.convert(inputs, observer.wants_elements_of(op.name), 1);
    uint64_t id = 0;
    op.values = converted;
    op.value_count = inputs.size();
    if (!op.schema.size) add_kernel(function, values, op, converted + inputs.size());
    return to.ops->begin_op(to.self, &op, &id) == KPT_OK ? id : 0;
}

// Passes the operator to the observers in the slots from FIRST on.
[[gnu::noinline]] void begin_in_full(const at::RecordFunction &function, const FunctionTexts &texts,
                                     at::ArrayRef<const c10::IValue> inputs, size_t first,
                                     Reporter &here, OpContext &begun)
{
    Values::Scope scope(here.values());
    const kpt_op op = described(function, texts, here.values());
    const size_t end = active_end.load(std::memory_order_relaxed);
    for (size_t i = first; i < end; i++) {
        const PluginObserver *observer = active_observers[i].load(std::memory_order_acquire);
        if (!observer) continue;
        const uint64_t id = begin_for(*observer, function, inputs, here.values(), op);
        if (id) begun.numbers[begun.count++] = {&observer->plugins(), id};
    }
}

// Writes the operator on the tape of the first observer, which is usually the only one. Returns false if it is
// not on the tape.
[[gnu::hot]] bool begin_on_tape(const at::RecordFunction &function, Called &called,
                                at::ArrayRef<const c10::IValue> inputs, Reporter &here,
                                OpContext &begun)
{
    const PluginObserver *observer = active_observers[0].load(std::memory_order_acquire);
    Tape *tape = observer ? here.tape_for(*observer) : nullptr;
    if (!tape || !called.key || !has_only_values(function, called) ||
        observer->wants_elements_of(called.texts->name))
        return false;
    begun.tape = tape->get(); // before begin, which may run code that changes the tape
    const uint64_t id = tape->begin(function, called, inputs);
    if (!id) {
        begun.tape = nullptr;
        here.forget_tape();
        return false;
    }
    begun.numbers[0] = {&observer->plugins(), id};
    begun.count = 1;
    return true;
}

// Allocates the operator's context, which is passed to its end.
[[gnu::noinline]] std::unique_ptr<at::ObserverContext>
begin_with_context(const at::RecordFunction &function, const TracedOp::One *begun_already,
                   bool has_inputs)
{
    std::unique_ptr<OpContext> begun(new OpContext); // not zeroed
    if (begun_already)
        begun->traced.tokens[begun->traced.count++] = *begun_already;
    else
        trace_begin(function, begun->traced, has_inputs);
    return begun;
}

// For tracers only. An operator that OpCaller keeps needs no context.
template <OpDetail detail>
[[gnu::hot]] std::unique_ptr<at::ObserverContext>
begin_traced_operator(const at::RecordFunction &function)
{
    if (op_hot.detail.load(std::memory_order_relaxed) != detail) [[unlikely]]
        return nullptr;
    try {
        if constexpr (detail == OpDetail::NAMES) {
            OpCaller &caller = OpCaller::here();
            TracedOp::One begun;
            if (trace_begin_fast(caller, function, begun)) [[likely]] {
                if (!begun.token || caller.open({&function, begun.tracer, begun.token})) [[likely]]
                    return nullptr;
                return begin_with_context(function, &begun, false);
            }
        }
        return begin_with_context(function, nullptr, detail == OpDetail::INPUTS);
    } catch (const std::exception &) { // no memory; the operator continues
        return nullptr;
    }
}

[[gnu::hot]] void end_traced_operator(const at::RecordFunction &function,
                                      at::ObserverContext *context)
{
    if (context) [[unlikely]]
        trace_end(static_cast<const OpContext *>(context)->traced);
    else
        trace_end_fast(function);
}

[[gnu::hot]] std::unique_ptr<at::ObserverContext> begin_operator(const at::RecordFunction &function)
{
    const size_t end = active_end.load(std::memory_order_relaxed);
    if (op_hot.detail.load(std::memory_order_relaxed) != OpDetail::VALUES) return nullptr;
    try {
        Reporter &here = Reporter::here();
        std::unique_ptr<OpContext> begun(new OpContext); // not zeroed
        trace_begin(function, begun->traced, true);
        if (!end) return begun;
        Called &called = called_of(function);
        // Capturing the stack may run other operators, and CALLED may then belong to one of them.
        const FunctionTexts &texts = *called.texts;
        const auto inputs = last_of(function.inputs(), called.inputs);
        begun->outputs = called.outputs;
        const size_t reported = begin_on_tape(function, called, inputs, here, *begun);
        if (reported < end) begin_in_full(function, texts, inputs, reported, here, *begun);
        begun->exceptions = here.uncaught_exceptions();
        return begun;
    } catch (const std::exception &) { // no memory; the operator continues
        return nullptr;
    }
}

[[gnu::noinline]] void end_in_full(const OpContext &begun, at::ArrayRef<const c10::IValue> outputs,
                                   bool raised, uint32_t first, Values &values)
{
    Values::Scope scope(values);
    kpt_op op;
    KPT_INIT(&op);
    op.values = values.convert(outputs, false);
    op.value_count = outputs.size();
    for (uint32_t i = first; i < begun.count; i++) {
        const kpt_observer &to = *begun.numbers[i].observer;
        (void)to.ops->end_op(to.self, begun.numbers[i].id, &op,
                             raised ? kpt_str_of("raised") : kpt_str{});
    }
}

[[gnu::hot]] void end_operator(const at::RecordFunction &function, at::ObserverContext *context)
{
    const auto *begun = static_cast<const OpContext *>(context);
    if (!begun) return;
    trace_end(begun->traced);
    if (!begun->count) return;
    try {
        Reporter &here = Reporter::here();
        const bool raised = here.uncaught_exceptions() > begun->exceptions;
        const auto &all = function.outputs();
        const auto outputs =
            last_of(at::ArrayRef<const c10::IValue>(all.data(), all.size()), begun->outputs);
        const uint32_t reported = begun->tape && begun->tape == here.tape().get() && !raised &&
                                  here.tape().end(begun->numbers[0].id, outputs);
        if (reported < begun->count) end_in_full(*begun, outputs, raised, reported, here.values());
    } catch (const std::exception &) { // no memory; its observers end it with its parent
    }
}

// Not KERNEL_FUNCTION_DTYPE, BUILD_FEATURE and CUSTOM_CLASS: only builds that find out what a mobile build needs report
// them. Each scope costs some 600 instructions for each node that autograd runs: torch sets the thread's state before and
// after the node, and each time makes the list of callbacks of each scope anew.
at::CallbackHandle add_callbacks(OpDetail detail)
{
    using Scope = at::RecordScope;
    const bool values = detail == OpDetail::VALUES;
    const bool inputs = detail == OpDetail::INPUTS;
    return at::addGlobalCallback(
        at::RecordFunctionCallback(values   ? begin_operator
                                   : inputs ? begin_traced_operator<OpDetail::INPUTS>
                                            : begin_traced_operator<OpDetail::NAMES>,
                                   values ? end_operator : end_traced_operator)
            .needsInputs(values || inputs)
            .needsOutputs(values)
            .needsIds(values)
            .scopes({Scope::FUNCTION, Scope::BACKWARD_FUNCTION, Scope::TORCHSCRIPT_FUNCTION,
                     Scope::USER_SCOPE, Scope::LITE_INTERPRETER, Scope::STATIC_RUNTIME_OP,
                     Scope::STATIC_RUNTIME_MODEL}));
}

// At exit, torch's list of callbacks may be destroyed before an observer that was left running.
void remove_callbacks(at::CallbackHandle handle)
{
    if (handle != at::INVALID_CALLBACK_HANDLE && Py_IsInitialized()) at::removeCallback(handle);
}

// Registers the pair that the running observers and tracers need. A new pair is registered before the old one is
// removed, and passes operators on as soon as the old one does not.
void update_callbacks_locked()
{
    const OpDetail wanted = active_end                 ? OpDetail::VALUES
                            : op_tracers_want_inputs() ? OpDetail::INPUTS
                            : has_op_tracers()         ? OpDetail::NAMES
                                                       : OpDetail::NONE;
    const at::CallbackHandle old = callback_handle;
    if (wanted == op_hot.detail) return;
    callback_handle =
        wanted == OpDetail::NONE ? at::INVALID_CALLBACK_HANDLE : add_callbacks(wanted);
    op_hot.detail = wanted;
    remove_callbacks(old);
}

// Acquires the locks, so that no thread is changing a table when the process forks.
void hold_tables()
{
    OpCaller::hold();
    identities_hold();
    texts_hold();
}

void release_tables()
{
    texts_release();
    identities_release();
    OpCaller::release();
}

// In the child the plugin's observers have ended, and so have the operators of the parent's other threads.
void observing_forked()
{
    for (auto &slot : active_observers)
        slot = nullptr;
    active_end = 0;
    op_tracers_forked();
    new (&active_lock) std::mutex;
    release_tables();
}

} // namespace

namespace
{

void prepare_callbacks()
{
    static const int hooked = pthread_atfork(hold_tables, release_tables, observing_forked);
    (void)hooked;
    texts_watch();
}

} // namespace

bool begin_observing(const PluginObserver &observer)
{
    prepare_callbacks();
    std::lock_guard<std::mutex> guard(active_lock);
    auto *const slot = std::find(active_observers.begin(), active_observers.end(), nullptr);
    if (slot == active_observers.end()) return false;
    *slot = &observer;
    active_end =
        std::max<size_t>(active_end, static_cast<size_t>(slot - active_observers.begin()) + 1);
    update_callbacks_locked();
    return true;
}

void end_observing(const PluginObserver &observer)
{
    std::lock_guard<std::mutex> guard(active_lock);
    for (auto &slot : active_observers)
        if (slot == &observer) slot = nullptr;
    while (active_end && !active_observers[active_end - 1])
        active_end--;
    update_callbacks_locked();
}

bool begin_tracing_ops(const kpt_tracer &tracer, bool with_inputs, const ThreadState *mark)
{
    prepare_callbacks();
    std::lock_guard<std::mutex> guard(active_lock);
    if (!add_op_tracer(tracer, with_inputs, mark)) return false;
    update_callbacks_locked();
    return true;
}

void end_tracing_ops(kpt_handle tracer)
{
    std::lock_guard<std::mutex> guard(active_lock);
    remove_op_tracer(tracer);
    update_callbacks_locked();
}

} // namespace kpytrace
