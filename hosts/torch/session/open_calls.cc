#include "hosts/torch/session/open_calls.h"

#include <algorithm>
#include <string_view>

#include "hosts/torch/session/thread_numbers.h"

namespace kpytrace
{

void OpenCalls::see()
{
    // This loop makes frame objects. A garbage collection would run finalizers, and those may release the GIL.
    int collects = PyGC_Disable();
    each_thread_state([this](PyThreadState *state) {
        std::vector<Call> &calls = threads_[os_tid_of(state, 0)];
        for (auto *frame = PyThreadState_GetFrame(state); frame;) {
            PyCodeObject *code = PyFrame_GetCode(frame);
            const char *name = PyUnicode_AsUTF8(code->co_name);
            int line = PyFrame_GetLineNumber(frame);
            if (!name) PyErr_Clear();
            calls.push_back({name ? name : "", line > 0 ? static_cast<uint32_t>(line) : 0});
            PyFrameObject *back = PyFrame_GetBack(frame);
            Py_DECREF(code);
            Py_DECREF(frame);
            frame = back;
        }
        std::reverse(calls.begin(), calls.end());
    });
    if (collects) PyGC_Enable();
}

uint32_t OpenCalls::line(uint64_t os_tid, uint32_t depth, kpt_str function) const
{
    auto thread = threads_.find(os_tid);
    if (thread == threads_.end() || depth >= thread->second.size()) return 0;
    const Call &call = thread->second[depth];
    return call.function == std::string_view(function.data, function.size) ? call.line : 0;
}

} // namespace kpytrace
