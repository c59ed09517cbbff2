#include "open_calls.h"

#include <torch/csrc/utils/pythoncapi_compat.h>

#include <string_view>

#include "threads.h"

namespace kpytrace
{

static uint64_t answer_of(PyFrameObject *frame, Objects &objects, Watch watch)
{
    PyObject *self = PyFrame_GetVarString(frame, "self");
    if (!self) PyErr_Clear();
    uint64_t answer = objects.see(watch, self);
    Py_XDECREF(self);
    return answer;
}

void OpenCalls::see(Objects &objects, PyCodeObject *module_call, PyCodeObject *optimizer_step)
{
    PyInterpreterState *interpreter = PyThreadState_GetInterpreter(PyThreadState_Get());
    for (auto *state = PyInterpreterState_ThreadHead(interpreter); state;
         state = PyThreadState_Next(state)) {
        std::vector<PyFrameObject *> frames; // the outermost last
        for (auto *frame = PyThreadState_GetFrame(state); frame; frame = PyFrame_GetBack(frame))
            frames.push_back(frame);
        std::vector<OpenCall> &calls = threads_[os_tid_of(state, 0)];
        for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
            PyCodeObject *code = PyFrame_GetCode(*frame);
            const char *name = PyUnicode_AsUTF8(code->co_name);
            int line = PyFrame_GetLineNumber(*frame);
            if (!name) PyErr_Clear();
            calls.push_back({name ? name : "", line > 0 ? static_cast<uint32_t>(line) : 0, 0});
            if (code == module_call)
                calls.back().answer = answer_of(*frame, objects, MODULE_CALL);
            else if (code == optimizer_step)
                calls.back().answer = answer_of(*frame, objects, OPTIMIZER_STEP);
            Py_DECREF(code);
            Py_DECREF(*frame);
        }
    }
}

const OpenCall *OpenCalls::find(uint64_t os_tid, uint32_t ordinal, kpt_str function) const
{
    auto thread = threads_.find(os_tid);
    if (thread == threads_.end() || ordinal >= thread->second.size()) return nullptr;
    const OpenCall &call = thread->second[ordinal];
    return call.function == std::string_view(function.data, function.size) ? &call : nullptr;
}

} // namespace kpytrace
