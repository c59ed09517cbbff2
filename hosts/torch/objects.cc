#include "objects.h"

#include <torch/csrc/utils/pythoncapi_compat.h>

#include "snapshot.h"
#include "threads.h"

namespace kpytrace
{

// The entry of OBJECT, made where there is none or the one of its address has died. Null: it can't
// be referred to weakly, and so not be told from its successors.
Objects::Identity *Objects::find(Identities &in, PyObject *object, bool &fresh)
{
    auto known = in.find(object);
    fresh = false;
    if (known != in.end()) {
        PyObject *alive = nullptr;
        (void)PyWeakref_GetRef(known->second.reference, &alive);
        Py_XDECREF(alive);
        if (alive == object) return &known->second;
        Py_DECREF(known->second.reference);
        in.erase(known);
    }
    PyObject *reference = PyWeakref_NewRef(object, nullptr);
    if (!reference) {
        PyErr_Clear();
        return nullptr;
    }
    fresh = true;
    return &in.emplace(object, Identity{reference, 0}).first->second;
}

// How many objects of this class were seen before.
uint64_t Objects::number_of(PyTypeObject *type)
{
    bool fresh;
    Identity *known = find(classes_, reinterpret_cast<PyObject *>(type), fresh);
    return known ? known->number++ : 0;
}

uint64_t Objects::see(uint64_t watch, PyObject *self)
{
    bool fresh = false;
    Identity *known = self ? find(objects_, self, fresh) : nullptr;
    if (!known || !fresh) return known ? known->number : 0;
    Sighting sighting;
    if (watch == MODULE_CALL) {
        sighting.module = read_module(self);
        sighting.module->id_ = number_of(Py_TYPE(self));
    } else {
        sighting.optimizer = read_optimizer(self);
    }
    std::lock_guard<std::mutex> guard(lock_);
    sightings_.push_back(std::move(sighting));
    return known->number = sightings_.size();
}

const Sighting *Objects::sighting(uint64_t answer) const
{
    std::lock_guard<std::mutex> guard(lock_);
    return answer && answer <= sightings_.size() ? &sightings_[answer - 1] : nullptr;
}

// --- calls that run when recording begins ---------------------------------------------------------

static PyObject *first_argument(PyFrameObject *frame)
{
    PyObject *self = PyFrame_GetVarString(frame, "self");
    if (!self) PyErr_Clear();
    return self;
}

void Objects::see_frames_of(PyThreadState *state, PyCodeObject *module_call, PyCodeObject *step)
{
    std::vector<PyFrameObject *> frames; // outermost last
    for (PyFrameObject *frame = PyThreadState_GetFrame(state); frame;
         frame = PyFrame_GetBack(frame))
        frames.push_back(frame);
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
        PyCodeObject *code = PyFrame_GetCode(*frame);
        if (code == module_call || code == step) {
            PyObject *self = first_argument(*frame);
            const char *name = PyUnicode_AsUTF8(code->co_name);
            open_.push_back({static_cast<uint64_t>(os_tid_of(state, 0)), name ? name : "",
                             static_cast<uint32_t>(code->co_firstlineno),
                             see(code == step ? OPTIMIZER_STEP : MODULE_CALL, self)});
            Py_XDECREF(self);
        }
        Py_DECREF(code);
        Py_DECREF(*frame);
    }
}

void Objects::see_open_calls(PyCodeObject *module_call, PyCodeObject *step)
{
    PyInterpreterState *interpreter = PyThreadState_GetInterpreter(PyThreadState_Get());
    for (auto *state = PyInterpreterState_ThreadHead(interpreter); state;
         state = PyThreadState_Next(state))
        see_frames_of(state, module_call, step);
    PyErr_Clear();
}

uint64_t Objects::open_call(uint64_t os_tid, const kpt_name &name, uint32_t ordinal) const
{
    std::string function(name.function.data, name.function.size);
    for (const OpenCall &call : open_) {
        if (call.os_tid != os_tid || call.first_line != name.first_line ||
            call.function != function)
            continue;
        if (ordinal-- == 0) return call.answer;
    }
    return 0;
}

// --- the end --------------------------------------------------------------------------------------

void Objects::release()
{
    if (objects_.empty() && classes_.empty()) return;
    if (Py_IsInitialized() && !Py_IsFinalizing()) {
        PyGILState_STATE gil = PyGILState_Ensure();
        for (Identities *all : {&objects_, &classes_})
            for (auto &entry : *all)
                Py_DECREF(entry.second.reference);
        PyGILState_Release(gil);
    }
    objects_.clear();
    classes_.clear();
}

void Objects::drop_parameters()
{
    std::lock_guard<std::mutex> guard(lock_);
    for (Sighting &sighting : sightings_) {
        if (sighting.module) sighting.module->parameters_.clear();
        sighting.optimizer.reset();
    }
}

Objects::~Objects()
{
    release();
}

} // namespace kpytrace
