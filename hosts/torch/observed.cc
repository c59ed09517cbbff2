#include "observed.h"

#include <ATen/record_function.h>
#include <Python.h>
#include <cxxabi.h>
#include <pthread.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <mutex>

#include "collectives.h"
#include "identities.h"
#include "of_thread.h"
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

    // From, and to, what the thread has spare.
    static void *operator new(size_t size);
    static void operator delete(void *block);

    size_t outputs = 0;
    unsigned exceptions = 0;
    uint32_t count = 0;
    std::array<One, MOST_OBSERVERS> numbers; // COUNT of them
};

// Where operators begin on one thread and end on another, the latter's would be ever more.
struct Spare {
    std::array<void *, 64> blocks;
    size_t count = 0;

    Spare() {}
    ~Spare()
    {
        while (count)
            ::operator delete(blocks[--count]);
    }
};

void *Begun::operator new(size_t size)
{
    Spare &spare = OfThread<Spare>::here();
    return spare.count ? spare.blocks[--spare.count] : ::operator new(size);
}

void Begun::operator delete(void *block)
{
    Spare &spare = OfThread<Spare>::here();
    if (spare.count < spare.blocks.size())
        spare.blocks[spare.count++] = block;
    else
        ::operator delete(block);
}

// The count behind std::uncaught_exceptions(), where the C++ ABI has it for this thread: asking takes calls
// into two libraries.
class Uncaught
{
  public:
    Uncaught() : counts_(reinterpret_cast<const Counts *>(abi::__cxa_get_globals())) {}

    unsigned count() const
    {
        return counts_->uncaught;
    }

  private:
    struct Counts { // __cxa_eh_globals
        void *caught;
        unsigned uncaught;
    };
    const Counts *const counts_;
};

unsigned uncaught_exceptions()
{
    return OfThread<Uncaught>::here().count();
}

// Those who are told of an operator.
class Listeners
{
  public:
    Listeners()
    {
        for (const auto &slot : told)
            if (const Observer *observer = slot.load(std::memory_order_acquire))
                all_[count_++] = observer;
    }

    const Observer *const *begin() const
    {
        return all_;
    }
    const Observer *const *end() const
    {
        return all_ + count_;
    }

  private:
    const Observer *all_[MOST_OBSERVERS];
    size_t count_ = 0;
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
    op.description = 0; // that number is of fewer texts
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

void describe(const at::RecordFunction &function, const FunctionTexts &texts, Values &values,
              kpt_op &op)
{
    const auto inputs = last_of(function.inputs(), texts.inputs);
    kpt_value *converted = values.convert(inputs, 1);
    op.scope = static_cast<uint32_t>(function.scope());
    op.name = texts.name;
    op.schema = texts.schema;
    op.description = texts.description;
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
}

std::unique_ptr<at::ObserverContext> begin_operator(const at::RecordFunction &function)
{
    if (!told_count.load(std::memory_order_relaxed)) return nullptr;
    try {
        std::unique_ptr<Begun> begun(new Begun); // not zeroed first
        const Listeners listeners;
        Values &values = Values::here();
        Values::Scope scope(values);
        kpt_op op;
        KPT_INIT(&op);
        const FunctionTexts texts = texts_of(function);
        describe(function, texts, values, op);
        const auto wants = [&op](const Observer *to) { return to->wants_elements_of(op.name); };
        if (std::any_of(listeners.begin(), listeners.end(), wants)) values.give_elements();
        for (const Observer *observer : listeners) {
            const kpt_observer &to = observer->plugins();
            uint64_t id;
            if (to.ops->begin_op(to.self, &op, &id) == KPT_OK && id)
                begun->numbers[begun->count++] = {&to, id};
        }
        begun->outputs = texts.outputs;
        begun->exceptions = uncaught_exceptions();
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
        const bool raised = uncaught_exceptions() > begun->exceptions;
        Values &values = Values::here();
        Values::Scope scope(values);
        kpt_op op;
        KPT_INIT(&op);
        const auto &all = function.outputs();
        const auto outputs =
            last_of(at::ArrayRef<const c10::IValue>(all.data(), all.size()), begun->outputs);
        op.values = values.convert(outputs);
        op.value_count = outputs.size();
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
