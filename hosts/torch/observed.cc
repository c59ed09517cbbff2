#include "observed.h"

#include <ATen/record_function.h>
#include <Python.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <mutex>

#include "collectives.h"
#include "texts.h"
#include "values.h"

namespace kpytrace
{

namespace
{

enum { MOST_OBSERVERS = 8 };

// Who is told.
std::array<std::atomic<const Observer *>, MOST_OBSERVERS> told{};
std::atomic<int> told_count{0};

// Only who begins and ends takes it; torch's own lock is taken under it.
std::mutex told_lock;
at::CallbackHandle told_handle = at::INVALID_CALLBACK_HANDLE;

// An operator that has begun, with its number for each observer that records it.
struct Begun : at::ObserverContext {
    struct One {
        const kpt_observer *observer;
        uint64_t id;
    };
    size_t outputs = 0;
    int exceptions = 0;
    uint32_t count = 0;
    std::array<One, MOST_OBSERVERS> numbers; // COUNT of them
};

// Of a stack of boxed values, the last ones are the function's own.
at::ArrayRef<const c10::IValue> last_of(at::ArrayRef<const c10::IValue> given, size_t count)
{
    return given.size() > count ? given.slice(given.size() - count) : given;
}

std::string_view base_name(std::string_view path)
{
    return path.substr(path.rfind('/') + 1); // all of it where there is none
}

// What compilers say of a kernel, beside its arguments; the stream goes behind those.
void add_kernel(const at::RecordFunction &function, Values &values, kpt_op &op, kpt_value *room)
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
    *room = {};
    room->kind = KPT_VALUE_STREAM;
    room->number = stream->second.toInt();
    op.value_count++;
}

void give_wanted_elements(Values &values, kpt_str name)
{
    const auto wants = [name](const auto &slot) {
        const Observer *observer = slot.load(std::memory_order_acquire);
        return observer && observer->wants_elements_of(name);
    };
    if (std::any_of(told.begin(), told.end(), wants)) values.give_elements();
}

void describe(const at::RecordFunction &function, const FunctionTexts &texts, Values &values,
              kpt_op &op)
{
    const auto inputs = last_of(function.inputs(), texts.inputs);
    kpt_value *converted = values.convert(inputs, 1);
    op.scope = static_cast<uint32_t>(function.scope());
    op.name = texts.name;
    op.schema = texts.schema;
    op.record_id = function.handle();
    op.forward_thread = function.forwardThreadId();
    op.thread = function.threadId();
    op.sequence = function.seqNr();
    op.values = converted;
    op.value_count = inputs.size();
    if (!texts.schema.size) add_kernel(function, values, op, converted + inputs.size());
    if (function.isNcclMeta()) {
        const auto attrs = collective_attrs(values);
        op.attrs = attrs.data();
        op.attr_count = attrs.size();
    }
    values.identify();
    give_wanted_elements(values, op.name);
}

std::unique_ptr<at::ObserverContext> begin_operator(const at::RecordFunction &function)
{
    if (!told_count.load(std::memory_order_relaxed)) return nullptr;
    try {
        auto begun = std::make_unique<Begun>();
        Values &values = Values::here();
        Values::Scope scope(values);
        kpt_op op;
        KPT_INIT(&op);
        const FunctionTexts texts = texts_of(function);
        describe(function, texts, values, op);
        for (const auto &slot : told) {
            const Observer *observer = slot.load(std::memory_order_acquire);
            if (!observer) continue;
            const kpt_observer &to = observer->plugins();
            uint64_t id;
            if (to.ops->begin_op(to.self, &op, &id) == KPT_OK && id)
                begun->numbers[begun->count++] = {&to, id};
        }
        begun->outputs = texts.outputs;
        begun->exceptions = std::uncaught_exceptions();
        return begun;
    } catch (const std::exception &) { // no memory; the operator goes on
        return nullptr;
    }
}

void end_operator(const at::RecordFunction &function, at::ObserverContext *context)
{
    const auto *begun = static_cast<const Begun *>(context);
    if (!begun || !begun->count) return;
    try {
        const bool raised = std::uncaught_exceptions() > begun->exceptions;
        Values &values = Values::here();
        Values::Scope scope(values);
        kpt_op op;
        KPT_INIT(&op);
        const auto &all = function.outputs();
        const auto outputs =
            last_of(at::ArrayRef<const c10::IValue>(all.data(), all.size()), begun->outputs);
        op.values = values.convert(outputs);
        op.value_count = outputs.size();
        values.identify();
        for (uint32_t i = 0; i < begun->count; i++) {
            const auto &[to, id] = begun->numbers[i];
            (void)to->ops->end_op(to->self, id, &op, raised ? kpt_str_of("raised") : kpt_str{});
        }
    } catch (const std::exception &) { // no memory; its observers end it with its parent
    }
}

at::CallbackHandle add_callbacks()
{
    using Scope = at::RecordScope;
    return at::addGlobalCallback(
        at::RecordFunctionCallback(begin_operator, end_operator)
            .needsInputs(true)
            .needsOutputs(true)
            .needsIds(true)
            .scopes({Scope::FUNCTION, Scope::BACKWARD_FUNCTION, Scope::TORCHSCRIPT_FUNCTION,
                     Scope::CUSTOM_CLASS, Scope::USER_SCOPE, Scope::LITE_INTERPRETER,
                     Scope::STATIC_RUNTIME_OP, Scope::STATIC_RUNTIME_MODEL}));
}

// The plugin's observers have ended in the child; so has what the parent's threads were in.
void observing_forked()
{
    for (auto &slot : told)
        slot = nullptr;
    told_count = 0;
    new (&told_lock) std::mutex;
    identities_forked();
    texts_forked();
}

} // namespace

bool begin_observing(const Observer &observer)
{
    static const int hooked = pthread_atfork(nullptr, nullptr, observing_forked);
    (void)hooked;
    std::lock_guard<std::mutex> guard(told_lock);
    for (auto &slot : told) {
        if (slot) continue;
        slot = &observer;
        told_count++;
        if (told_handle == at::INVALID_CALLBACK_HANDLE) told_handle = add_callbacks();
        return true;
    }
    return false;
}

void end_observing(const Observer &observer)
{
    std::lock_guard<std::mutex> guard(told_lock);
    for (auto &slot : told) {
        if (slot != &observer) continue;
        slot = nullptr;
        told_count--;
    }
    if (told_count || told_handle == at::INVALID_CALLBACK_HANDLE) return;
    // torch's list of callbacks may be gone before an observer that is left running at exit.
    if (Py_IsInitialized()) at::removeCallback(told_handle);
    told_handle = at::INVALID_CALLBACK_HANDLE;
}

} // namespace kpytrace
