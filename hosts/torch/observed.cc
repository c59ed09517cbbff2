#include "observed.h"

#include <ATen/record_function.h>
#include <Python.h>
#include <pthread.h>

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

// Who is told. A callback counts itself in before it looks; who ends an observer takes it out of here, and
// frees it when nobody is counted in. Both sides are sequentially consistent.
std::array<std::atomic<const Observer *>, MOST_OBSERVERS> told{};
std::atomic<int> told_count{0};
std::atomic<int> callbacks_inside{0};

// Only who begins and ends takes it; torch's own lock is taken under it.
std::mutex told_lock;
at::CallbackHandle told_handle = at::INVALID_CALLBACK_HANDLE;

struct Inside {
    Inside()
    {
        callbacks_inside++;
    }
    ~Inside()
    {
        callbacks_inside--;
    }
    Inside(const Inside &) = delete;
    Inside &operator=(const Inside &) = delete;
};

// An operator that has begun, with its number for each observer that records it.
struct Begun : at::ObserverContext {
    struct One {
        const kpt_observer_ops *ops;
        kpt_handle self;
        uint64_t id;
    };
    FunctionTexts texts{};
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
    bool wanted = false;
    bool of_this = false;
    for (const auto &slot : told)
        if (const Observer *observer = slot) {
            wanted |= observer->wants_elements();
            of_this |= observer->wants_elements_of(name);
        }
    if (wanted && of_this) values.give_elements(/*copy=*/true);
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
    Inside inside;
    if (!told_count.load(std::memory_order_relaxed)) return nullptr;
    try {
        auto begun = std::make_unique<Begun>();
        Values &values = Values::here();
        Values::Scope scope(values);
        kpt_op op;
        KPT_INIT(&op);
        begun->texts = texts_of(function);
        describe(function, begun->texts, values, op);
        for (const auto &slot : told) {
            const Observer *observer = slot;
            if (!observer) continue;
            Begun::One &one = begun->numbers[begun->count];
            one = {&observer->ops(), observer->self(), 0};
            if (one.ops->begin_op(one.self, &op, &one.id) == KPT_OK && one.id) begun->count++;
        }
        begun->exceptions = std::uncaught_exceptions();
        return begun;
    } catch (const std::exception &) { // no memory; the operator goes on
        return nullptr;
    }
}

void end_operator(const at::RecordFunction &function, at::ObserverContext *context)
{
    Inside inside;
    const auto *begun = static_cast<const Begun *>(context);
    if (!begun || !begun->count) return;
    try {
        const bool raised = std::uncaught_exceptions() > begun->exceptions;
        Values &values = Values::here();
        Values::Scope scope(values);
        kpt_op op;
        KPT_INIT(&op);
        const auto &all = function.outputs();
        const auto outputs = last_of({all.data(), all.size()}, begun->texts.outputs);
        op.values = values.convert(outputs);
        op.value_count = outputs.size();
        values.identify();
        for (uint32_t i = 0; i < begun->count; i++) {
            const Begun::One &one = begun->numbers[i];
            (void)one.ops->end_op(one.self, one.id, &op, kpt_str_of(raised ? "raised" : ""));
        }
    } catch (const std::exception &) { // no memory; its observers end it with its parent
    }
}

at::CallbackHandle add_callbacks()
{
    using Scope = at::RecordScope;
    return at::addGlobalCallback(at::RecordFunctionCallback(begin_operator, end_operator)
                                     .needsInputs(true)
                                     .needsOutputs(true)
                                     .needsIds(true)
                                     .scopes({Scope::FUNCTION, Scope::BACKWARD_FUNCTION,
                                              Scope::TORCHSCRIPT_FUNCTION, Scope::CUSTOM_CLASS,
                                              Scope::USER_SCOPE, Scope::LITE_INTERPRETER,
                                              Scope::STATIC_RUNTIME_OP,
                                              Scope::STATIC_RUNTIME_MODEL}));
}

// The plugin's observers have ended in the child; so has what the parent's threads were in.
void observing_forked()
{
    for (auto &slot : told)
        slot = nullptr;
    told_count = 0;
    callbacks_inside = 0;
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

bool is_observing()
{
    return callbacks_inside > 0;
}

} // namespace kpytrace
