#define PY_SSIZE_T_CLEAN
#include "hosts/torch/session/py_session_view.h"

#include <torch/csrc/profiler/collection.h>

#include <atomic>
#include <optional>

#include "hosts/torch/session/memory_reports.h"
#include "hosts/torch/session/session_view.h"

namespace kpytrace
{

namespace
{

// The names of the capsules with structs of the ABI.
constexpr char HOST[] = "kpytrace.kpt_host";
constexpr char ARGS[] = "kpytrace.kpt_tracer_args";

void free_settings(const Settings *settings)
{
    if (Py_IsInitialized()) {
        PyGILState_STATE gil = PyGILState_Ensure();
        for (const Settings::Watched &watched : settings->watched)
            Py_DECREF(watched.code);
        PyGILState_Release(gil);
    }
    delete settings;
}

bool read_prefixes(PyObject *list, std::vector<std::string> &out)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        const char *prefix = PyUnicode_AsUTF8(PyList_GET_ITEM(list, i));
        if (!prefix) return false;
        out.emplace_back(prefix);
    }
    return true;
}

// Watches each code object of LIST. Returns false if an exception is set.
bool read_watched(PyObject *list, Watch what, Settings &out)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
        PyObject *code = PyList_GET_ITEM(list, i);
        if (!PyCode_Check(code)) {
            PyErr_SetString(PyExc_TypeError, "a watched call must be a code object");
            return false;
        }
        Py_INCREF(code);
        out.watched.push_back({what, reinterpret_cast<PyCodeObject *>(code)});
    }
    return true;
}

// A view, with the structs that its capsules point to.
struct Lent {
    explicit Lent(std::shared_ptr<const Settings> settings)
        : view(std::move(settings), nullptr, false)
    {
    }

    SessionView view;
    std::optional<MemoryReports> memory;
    kpt_host host{};
    kpt_tracer_args args{};
    kpti_torch_recording recording{};
};
using Owner = std::shared_ptr<Lent>;

void free_owner(PyObject *capsule)
{
    delete static_cast<Owner *>(PyCapsule_GetContext(capsule));
}

// Returns a capsule of POINTER that keeps OWNER alive, or null with an exception.
PyObject *lend(const Owner &owner, void *pointer, const char *name)
{
    PyObject *capsule = PyCapsule_New(pointer, name, free_owner);
    if (capsule) (void)PyCapsule_SetContext(capsule, new Owner(owner));
    return capsule;
}

PyDoc_STRVAR(session_view_doc, "session_view(*arguments of install) -> (host, args): capsules for "
                               "the host that makes the tracer");
PyObject *session_view(PyObject *, PyObject *args)
{
    const auto settings = read_settings(args);
    if (!settings) return nullptr;
    const auto owner = std::make_shared<Lent>(settings);
    owner->view.see_present();
    owner->host = owner->view.callbacks();
    owner->args = owner->view.watches();
    PyObject *host = lend(owner, &owner->host, HOST);
    PyObject *watches = host ? lend(owner, &owner->args, ARGS) : nullptr;
    if (watches) return Py_BuildValue("NN", host, watches);
    Py_XDECREF(host);
    return nullptr;
}

// Returns the owner of a capsule of session_view(), or null with an exception.
const Owner *owner_of(PyObject *host)
{
    if (!PyCapsule_GetPointer(host, HOST)) return nullptr;
    return static_cast<const Owner *>(PyCapsule_GetContext(host));
}

PyDoc_STRVAR(
    view_thread_doc,
    "view_thread(host, memory, inputs) -> (bool, mark): marks the calling thread as profiled from "
    "now on, so that torch's C++ code has ranges there, with INPUTS. With MEMORY, returns whether "
    "the session receives torch's reports of memory. The mark is for trace_operators(), until "
    "leave_thread(), and 0 if the thread has none");
PyObject *view_thread(PyObject *, PyObject *args)
{
    PyObject *host;
    int memory;
    int inputs;
    if (!PyArg_ParseTuple(args, "Opp", &host, &memory, &inputs)) return nullptr;
    const Owner *owner = owner_of(host);
    if (!owner) return nullptr;
    (*owner)->memory.emplace(memory != 0, inputs != 0);
    const auto mark = reinterpret_cast<uintptr_t>((*owner)->memory->mark());
    return Py_BuildValue("NK", PyBool_FromLong((*owner)->memory->is_receiving()),
                         static_cast<unsigned long long>(mark));
}

PyDoc_STRVAR(mark_again_doc, "mark_again(host): after a profile of torch's own in the session");
PyObject *mark_again(PyObject *, PyObject *host)
{
    const Owner *owner = owner_of(host);
    if (!owner) return nullptr;
    if ((*owner)->memory) (*owner)->memory->mark_again();
    Py_RETURN_NONE;
}

PyDoc_STRVAR(leave_thread_doc, "leave_thread(host): ends view_thread()");
PyObject *leave_thread(PyObject *, PyObject *host)
{
    const Owner *owner = owner_of(host);
    if (!owner) return nullptr;
    if ((*owner)->memory) (*owner)->memory->end();
    Py_RETURN_NONE;
}

PyDoc_STRVAR(
    free_thread_doc,
    "free_thread(marks) -> bool: removes what sessions that were ended on another thread have "
    "left on the calling one, and marks too if that is true. Returns whether other threads have "
    "some left");
PyObject *free_thread(PyObject *, PyObject *marks)
{
    return PyBool_FromLong(ThreadState::free_thread(marks == Py_True));
}

// Reserves numbers for the operators of a profile, of which TRACER has no more than half its events. Returns the number
// before them. The numbers of later profiles are higher, until they are used up.
uint64_t reserve_numbers(const kpt_tracer &tracer)
{
    static std::atomic<uint64_t> used{0};
    kpt_stats stats;
    KPT_INIT(&stats);
    if (tracer.ops->get_stats(tracer.self, &stats) != KPT_OK) return 0;
    return used.fetch_add(stats.events / 2 + 1) % (UINT32_MAX / 2);
}

PyDoc_STRVAR(view_recording_doc, "view_recording(host, ops, tracer, end_ns) -> a capsule with the "
                                 "recording of the stopped tracer, "
                                 "which the caller keeps alive");
PyObject *view_recording(PyObject *, PyObject *args)
{
    PyObject *host;
    unsigned long long ops;
    unsigned long long self;
    long long end_ns;
    if (!PyArg_ParseTuple(args, "OKKL", &host, &ops, &self, &end_ns)) return nullptr;
    const Owner *found = owner_of(host);
    if (!found) return nullptr;
    const Owner &owner = *found;
    owner->view.objects().release();
    kpti_torch_recording &recording = owner->recording;
    recording = owner->view.lent();
    recording.handed = recording.listed = KPTI_TORCH_HANDED_NONE;
    KPT_INIT(&recording.tracer);
    recording.tracer.ops = reinterpret_cast<const kpt_tracer_ops *>(static_cast<uintptr_t>(ops));
    recording.tracer.self = self;
    recording.end_ns = end_ns;
    recording.numbers_before = reserve_numbers(recording.tracer);
    recording.has_no_links = !torch::profiler::impl::get_fwd_bwd_enabled();
    if (owner->memory) {
        recording.memory = owner->memory->reports().data();
        recording.memory_count = owner->memory->reports().size();
        recording.memory_lost = owner->memory->lost();
    }
    return lend(owner, &recording, KPTI_TORCH_RECORDING_CAPSULE);
}

} // namespace

std::shared_ptr<const Settings> read_settings(PyObject *args)
{
    const char *plugin;
    int mode;
    int late_threads;
    PyObject *prefixes;
    PyObject *modules;
    PyObject *optimizers;
    PyObject *kept;
    auto *settings = new Settings;
    std::shared_ptr<const Settings> owned(settings, free_settings);
    if (!PyArg_ParseTuple(args, "sipIO!O!O!O!", &plugin, &mode, &late_threads, &settings->tool_id,
                          &PyList_Type, &prefixes, &PyList_Type, &modules, &PyList_Type,
                          &optimizers, &PyList_Type, &kept) ||
        !read_prefixes(prefixes, settings->prefixes) ||
        !read_watched(modules, MODULE_CALL, *settings) ||
        !read_watched(optimizers, OPTIMIZER_STEP, *settings) ||
        !read_watched(kept, KEPT_CALL, *settings))
        return nullptr;
    settings->plugin = plugin;
    settings->mode = static_cast<Mode>(mode);
    settings->late_threads = late_threads != 0;
    return owned;
}

PyMethodDef session_view_methods[] = {
    {"session_view", session_view, METH_VARARGS, session_view_doc},
    {"view_thread", view_thread, METH_VARARGS, view_thread_doc},
    {"mark_again", mark_again, METH_O, mark_again_doc},
    {"leave_thread", leave_thread, METH_O, leave_thread_doc},
    {"free_thread", free_thread, METH_O, free_thread_doc},
    {"view_recording", view_recording, METH_VARARGS, view_recording_doc},
    {nullptr, nullptr, 0, nullptr},
};

} // namespace kpytrace
