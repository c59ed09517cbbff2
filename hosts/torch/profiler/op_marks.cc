#include "hosts/torch/profiler/op_marks.h"

#include <ATen/record_function.h>
#include <Python.h>
#include <torch/csrc/profiler/orchestration/observer.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "hosts/torch/common/function_kind.h"

namespace kpytrace
{

namespace
{

// The tracer that receives marks. A callback increments `inside` before it reads `marked`, and end_marks waits
// for `inside`. So a tracer is not destroyed while a callback uses it. Both sides are sequentially consistent.
std::atomic<kpt_handle> marked{0};
std::atomic<const kpt_tracer_ops *> marked_ops{nullptr};
std::atomic<int> inside{0};
std::atomic<uint64_t> spans{0};

// Acquired only by begin_marks and end_marks. torch's own lock is acquired under it.
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

// Global callbacks run before a thread's callbacks, which are the profiler's. So a call is clamped no later
// than the annotation begins.
std::unique_ptr<at::ObserverContext> annotation_begins(const at::RecordFunction &)
{
    auto span = std::make_unique<Span>(++spans);
    mark(KPT_MARK_BEGIN, span->number);
    return span;
}

template <bool points>
std::unique_ptr<at::ObserverContext> function_begins(const at::RecordFunction &function)
{
    if (is_range(function)) return annotation_begins(function);
    if constexpr (points) mark(KPT_MARK_POINT, 0);
    return nullptr;
}

// Returns true if torch's profiler records ends on this thread: on its own thread, and on threads to which
// torch has propagated its state, such as a future's. For torch, an annotation that ends on another thread
// stays open. From 2.15 on, each of the two states has its own accessor.
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

// At exit, torch's list of callbacks may be destroyed before a tracer that was left running.
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
    marked_ops = tracer.ops; // all tracers are of one plugin and have the same ops
    marked = tracer.self;
    if (points && operators == at::INVALID_CALLBACK_HANDLE) {
        operators = add_operators();
        remove(functions); // replaces one without points
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
