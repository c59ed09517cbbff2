#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hosts/torch/traceback/unwinder.h"

#include <torch/csrc/profiler/combined_traceback.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <new>

#include "hosts/torch/common/plugin_client.h"
#include "hosts/torch/traceback/inductor_frames.h"

namespace kpytrace
{
namespace
{

using torch::CapturedTraceback;
using torch::SymbolizedTracebacks;
using PyFrames = std::vector<CapturedTraceback::PyFrame>;
using Code = decltype(CapturedTraceback::PyFrame::code);

// The number is made odd, since no Python object has an odd address.
Code code_of(uint32_t number)
{
    return reinterpret_cast<Code>((uintptr_t{number} << 1) | 1);
}

uint32_t number_of(Code code)
{
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(code) >> 1);
}

// The results of torch's own unwinder, if this torch has these functions.
template <class Unwinder> auto can_gather(Unwinder *next, int) -> decltype(next->canGather())
{
    return !next || next->canGather();
}
template <class Unwinder> bool can_gather(Unwinder *, long)
{
    return true;
}
template <class Unwinder>
auto forward_traceback(Unwinder *next, int) -> decltype(next->gatherForwardTraceback())
{
    return next ? next->gatherForwardTraceback() : std::vector<std::string>{};
}
template <class Unwinder> std::vector<std::string> forward_traceback(Unwinder *, long)
{
    return {};
}

// Holds the GIL, with a pending exception saved. Does nothing if Python has ended.
class Interpreter
{
  public:
    Interpreter() : here_(Py_IsInitialized() != 0)
    {
        if (!here_) return;
        gil_ = PyGILState_Ensure();
        PyErr_Fetch(&type_, &value_, &traceback_);
    }
    ~Interpreter()
    {
        if (!here_) return;
        PyErr_Restore(type_, value_, traceback_);
        PyGILState_Release(gil_);
    }
    Interpreter(const Interpreter &) = delete;
    Interpreter &operator=(const Interpreter &) = delete;

    bool here() const
    {
        return here_;
    }

  private:
    bool here_;
    PyGILState_STATE gil_ = PyGILState_UNLOCKED;
    PyObject *type_ = nullptr;
    PyObject *value_ = nullptr;
    PyObject *traceback_ = nullptr;
};

// Returns valid UTF-8 for any input, or TEXT unchanged if PYTHON is false. torch rejects a whole batch if one
// string is invalid.
std::string readable(kpt_str text, bool python)
{
    std::string plain = text.size ? std::string(text.data, text.size) : std::string();
    if (!python) return plain;
    PyObject *decoded = PyUnicode_DecodeUTF8(plain.data(), static_cast<Py_ssize_t>(plain.size()),
                                             "backslashreplace");
    Py_ssize_t size = 0;
    const char *bytes = decoded ? PyUnicode_AsUTF8AndSize(decoded, &size) : nullptr;
    if (bytes) plain.assign(bytes, static_cast<size_t>(size));
    Py_XDECREF(decoded);
    PyErr_Clear();
    return plain;
}

struct Answer {
    SymbolizedTracebacks &to;
    bool python;
};

// Implements kpt_symbols_fn. Appends the symbols to torch's.
kpt_status take_symbols(void *ctx, const kpt_symbols *symbols)
try {
    auto *answer = static_cast<Answer *>(ctx);
    SymbolizedTracebacks &to = answer->to;
    const uint64_t before = to.all_frames.size();
    for (uint64_t i = 0; i < symbols->symbol_count; i++) {
        const auto &symbol = *reinterpret_cast<const kpt_symbol *>(
            reinterpret_cast<const char *>(symbols->symbols) + i * symbols->symbol_stride);
        to.all_frames.push_back({readable(symbol.file, answer->python),
                                 readable(symbol.name, answer->python), symbol.line});
    }
    for (uint64_t i = 0; i < symbols->span_count; i++) {
        std::vector<uint64_t> frames;
        for (uint64_t j = 0; j < symbols->spans[i].count; j++)
            frames.push_back(before + symbols->frames[symbols->spans[i].first + j]);
        to.tracebacks.push_back(std::move(frames));
    }
    return KPT_OK;
} catch (const std::bad_alloc &) {
    return KPT_E_MEMORY;
}

class Unwinder final : public CapturedTraceback::Python
{
  public:
    bool open(const std::string &plugin, std::string &why)
    {
        kpt_host host;
        kpt_tracebacks_args args;
        KPT_INIT(&host);
        KPT_INIT(&args);
        host.name = kpt_str_of("torch");
        args.generated = add_generated;
        if (client_.open(plugin, host) && client_.make_tracebacks(args, tracebacks_)) return true;
        why = client_.error();
        return false;
    }

    void serve(bool serving)
    {
        serving_ = serving;
    }

    // Not marked override: torch before 2.13 does not call it, and finds by an empty list of frames that we do
    // not serve.
    bool canGather()
    {
        return serving_ && can_gather(next_, 0);
    }

    PyFrames gather() override
    {
        PyFrames frames;
        kpt_traceback traceback{};
        if (!serving_ ||
            tracebacks_.ops->gather(tracebacks_.self, KPT_GATHER_PYTHON | KPT_GATHER_WAIT, 0,
                                    &traceback) != KPT_OK)
            return frames;
        read_frames(traceback, frames);
        (void)tracebacks_.ops->release(tracebacks_.self, &traceback, 1);
        return frames;
    }

    // Numbers are valid for ever, so there is nothing to release.
    void release(PyFrames &) override {}
    int traverse(PyFrames &, CapturedTraceback::visitproc, void *) override
    {
        return 0;
    }
    int clear(PyFrames &) override
    {
        return 0;
    }

    void appendSymbolized(const PyFrames &frames, SymbolizedTracebacks &to) override
    {
        const size_t wanted = to.tracebacks.size() + frames.size();
        std::vector<uint32_t> numbers;
        numbers.reserve(frames.size());
        for (const auto &frame : frames)
            numbers.push_back(number_of(frame.code));
        Interpreter interpreter;
        AskingTorch asking(interpreter.here());
        Answer answer{to, interpreter.here()};
        (void)tracebacks_.ops->symbolize_frames(tracebacks_.self, numbers.data(), numbers.size(),
                                                take_symbols, &answer);
        // torch expects one traceback per frame.
        to.tracebacks.resize(std::min(to.tracebacks.size(), wanted));
        while (to.tracebacks.size() < wanted) {
            to.tracebacks.push_back({to.all_frames.size()});
            to.all_frames.push_back({"??", "??", 0});
        }
    }

    // As in torch's own unwinder. Neither function exists in all versions of torch.
    std::vector<std::string> gatherForwardTraceback()
    {
        return forward_traceback(next_, 0);
    }

  private:
    void read_frames(const kpt_traceback &traceback, PyFrames &frames) const
    {
        std::array<uint32_t, 2048> few; // a second call would count the frames again
        std::vector<uint32_t> many;
        uint32_t *numbers = few.data();
        uint64_t count = 0;
        (void)tracebacks_.ops->get_frames(tracebacks_.self, &traceback, numbers, few.size(),
                                          &count);
        if (count > few.size()) {
            many.resize(count);
            numbers = many.data();
            (void)tracebacks_.ops->get_frames(tracebacks_.self, &traceback, numbers, many.size(),
                                              &count);
        }
        frames.reserve(count);
        for (uint64_t i = 0; i < count; i++)
            frames.push_back({code_of(numbers[i]), 0});
    }

    PluginClient client_;
    kpt_tracebacks tracebacks_{};
    std::atomic<bool> serving_{false};
};

std::atomic<Unwinder *> the_unwinder{nullptr};

} // namespace

std::string install_unwinder(const std::string &plugin)
{
    Unwinder *unwinder = the_unwinder;
    if (!unwinder) {
        auto made = std::make_unique<Unwinder>();
        std::string why;
        if (!made->open(plugin, why)) return why;
        unwinder = made.release(); // torch keeps it for ever
        the_unwinder = unwinder;
        CapturedTraceback::addPythonUnwinder(unwinder);
    }
    unwinder->serve(true);
    return {};
}

void uninstall_unwinder()
{
    if (Unwinder *unwinder = the_unwinder) unwinder->serve(false);
}

} // namespace kpytrace
