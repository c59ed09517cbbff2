#include "hosts/torch/profiler/op_marks.h"

#include <ATen/record_function.h>
#include <Python.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <atomic>
#include <mutex>
#include <string_view>
#include <thread>

namespace kpytrace
{

namespace
{

// Who is marked. Callbacks count themselves in before they look, and end_marks waits for them: so a
// tracer is not gone while one is at it. Both sides are sequentially consistent.
std::atomic<kpt_handle> marked{0};
std::atomic<const kpt_tracer_ops *> marked_ops{nullptr};
std::atomic<int> inside{0};
std::atomic<uint64_t> spans{0};

// Only who begins and ends takes it; torch's own lock is taken under it.
std::mutex control;
at::CallbackHandle operators = at::INVALID_CALLBACK_HANDLE;
at::CallbackHandle functions = at::INVALID_CALLBACK_HANDLE;
at::CallbackHandle annotations = at::INVALID_CALLBACK_HANDLE;

void mark(uint32_t what, uint64_t number)
{
    inside++;
    if (kpt_handle self = marked) (void)marked_ops.load()->mark(self, what, number);
    inside--;
}

std::unique_ptr<at::ObserverContext> operator_begins(const at::RecordFunction &)
{
    mark(KPT_MARK_POINT, 0);
    return nullptr;
}

struct Span : at::ObserverContext {
    explicit Span(uint64_t given) : number(given) {}
    uint64_t number;
};

// Global callbacks run before those of a thread, which are the profiler's: so a call is cut no later
// than the annotation begins.
std::unique_ptr<at::ObserverContext> annotation_begins(const at::RecordFunction &)
{
    auto span = std::make_unique<Span>(++spans);
    mark(KPT_MARK_BEGIN, span->number);
    return span;
}

// Operators have the scope FUNCTION, and so has what Python begins and ends with _RecordFunctionFast, such as the
// phases of torch.compile: that has a name, and no schema. To ask for a schema copies its texts. But what has none
// has one and the same text for an overload, which operators have not.
std::atomic<const char *> overload_of_none{nullptr}; // set before there are callbacks

template <class Function> const char *overload_of(const Function &function)
{
    if constexpr (requires { function.overload_name(); }) return function.overload_name();
    return nullptr;
}

bool is_without_schema(const at::RecordFunction &function)
{
    return overload_of(function) == overload_of_none.load(std::memory_order_relaxed) &&
           !function.operator_name();
}

// Autograd's nodes have none either. They begin and end in one call, and are many.
bool is_of_autograd(const at::RecordFunction &function)
{
    static constexpr std::string_view prefix = "autograd::engine::";
    return std::string_view(function.name()).starts_with(prefix);
}

template <bool points>
std::unique_ptr<at::ObserverContext> function_begins(const at::RecordFunction &function)
{
    if (is_without_schema(function) && !is_of_autograd(function))
        return annotation_begins(function);
    if constexpr (points) mark(KPT_MARK_POINT, 0);
    return nullptr;
}

// Whether torch's profiler hears of what ends on this thread: on its own, and on those to which torch has
// carried its state, such as a future's. An annotation that ends elsewhere lasts, for torch. From 2.15 on
// the two states are asked for by names of their own.
template <class State> bool has_state()
{
    if constexpr (requires { State::getTLS(); })
        return State::getTLS() || State::getGlobal();
    else
        return State::get(/*global=*/false) || State::get(/*global=*/true);
}

bool torch_hears()
{
    return has_state<torch::profiler::impl::ProfilerStateBase>();
}

void annotation_ends(const at::RecordFunction &, at::ObserverContext *context)
{
    if (context && torch_hears()) mark(KPT_MARK_END, static_cast<Span *>(context)->number);
}

at::CallbackHandle add_operators()
{
    using Scope = at::RecordScope;
    return at::addGlobalCallback(
        at::RecordFunctionCallback(operator_begins)
            .scopes({Scope::BACKWARD_FUNCTION, Scope::TORCHSCRIPT_FUNCTION, Scope::CUSTOM_CLASS,
                     Scope::LITE_INTERPRETER, Scope::STATIC_RUNTIME_OP,
                     Scope::STATIC_RUNTIME_MODEL}));
}

// torch's list of callbacks may be gone before a tracer that is left running at exit.
void remove(at::CallbackHandle &handle)
{
    if (handle != at::INVALID_CALLBACK_HANDLE && Py_IsInitialized()) at::removeCallback(handle);
    handle = at::INVALID_CALLBACK_HANDLE;
}

} // namespace

void mark_point(const kpt_tracer &tracer)
{
    if (KPT_HAS(tracer.ops, kpt_tracer_ops, mark))
        (void)tracer.ops->mark(tracer.self, KPT_MARK_POINT, 0);
}

void begin_marks(const kpt_tracer &tracer, bool points)
{
    std::lock_guard<std::mutex> guard(control);
    if (!KPT_HAS(tracer.ops, kpt_tracer_ops, mark)) return;
    overload_of_none = overload_of(at::RecordFunction());
    marked_ops = tracer.ops; // of one plugin, so the same for every tracer
    marked = tracer.self;
    if (points && operators == at::INVALID_CALLBACK_HANDLE) {
        operators = add_operators();
        remove(functions); // may be one that marks no points
    }
    if (functions == at::INVALID_CALLBACK_HANDLE)
        functions = at::addGlobalCallback(
            at::RecordFunctionCallback(points ? function_begins<true> : function_begins<false>,
                                       annotation_ends)
                .scopes({at::RecordScope::FUNCTION}));
    if (annotations == at::INVALID_CALLBACK_HANDLE)
        annotations =
            at::addGlobalCallback(at::RecordFunctionCallback(annotation_begins, annotation_ends)
                                      .scopes({at::RecordScope::USER_SCOPE}));
}

void end_marks(const kpt_tracer &tracer)
{
    std::lock_guard<std::mutex> guard(control);
    if (marked != tracer.self) return;
    marked = 0;
    remove(operators);
    remove(functions);
    remove(annotations);
    while (inside)
        std::this_thread::yield();
}

} // namespace kpytrace
