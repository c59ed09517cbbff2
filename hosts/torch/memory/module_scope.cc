#include "hosts/torch/memory/module_scope.h"

#include <dlfcn.h>
#include <torch/csrc/utils/pythoncapi_compat.h>

#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "hosts/torch/memory/tensor_reports.h"

namespace kpytrace
{
namespace modules
{

// A text that is never freed. There are as many as different paths.
using Path = const std::string *;

struct Known {
    PyObject *reference; // weak: another module may get the same address
    Path path;
};

// The GIL guards these variables.
PyFunctionObject *function = nullptr; // the function that is followed
vectorcallfunc original = nullptr;    // that of every Python function
std::unordered_map<PyObject *, Known> known;

// Per thread. The root is borrowed from its running call, which resets `root` before it ends. With greenlets
// that may be any call, so only the call that has set the root resets it.
thread_local PyObject *root = nullptr;
thread_local Path path = nullptr;

Path interned(std::string text)
{
    static auto *all = new std::set<std::string>;
    return &*all->insert(std::move(text)).first;
}

// --- paths ----------------------------------------------------------------------------------------

// Reads a module's own dictionary, so that no code of the program runs.
PyObject *parts_of(PyObject *module)
{
    PyObject *dict = PyObject_GenericGetDict(module, nullptr);
    PyObject *parts = dict ? PyDict_GetItemString(dict, "_modules") : nullptr;
    Py_XDECREF(dict); // the module still owns it
    PyErr_Clear();
    return parts && PyDict_Check(parts) ? parts : nullptr;
}

// A part's name may not be valid text.
std::string text_of(PyObject *name)
{
    PyObject *bytes = PyUnicode_Check(name)
                          ? PyUnicode_AsEncodedString(name, "utf-8", "backslashreplace")
                          : nullptr;
    std::string text = bytes ? PyBytes_AS_STRING(bytes) : "?";
    Py_XDECREF(bytes);
    PyErr_Clear();
    return text;
}

void keep(PyObject *module, const std::string &text)
{
    PyObject *reference = PyWeakref_NewRef(module, nullptr);
    if (!reference) {
        PyErr_Clear();
        return;
    }
    Known &entry = known[module];
    PyObject *before = std::exchange(entry.reference, reference);
    entry.path = interned(text);
    Py_XDECREF(before);
}

// As Module.named_modules: a module with several positions gets the path of the first.
void list(PyObject *module, const std::string &text, std::unordered_set<PyObject *> &seen)
{
    // Owned references, since an allocation here may run a garbage collection.
    std::vector<std::pair<PyObject *, PyObject *>> parts;
    if (!seen.insert(module).second) return;
    PyObject *dict = parts_of(module);
    PyObject *name, *part;
    Py_ssize_t at = 0;
    keep(module, text);
    while (dict && PyDict_Next(dict, &at, &name, &part))
        if (part != Py_None) parts.emplace_back(Py_NewRef(name), Py_NewRef(part));
    for (auto [own_name, own_part] : parts) {
        list(own_part, text + "." + text_of(own_name), seen);
        Py_DECREF(own_name);
        Py_DECREF(own_part);
    }
}

Path find(PyObject *module)
{
    auto entry = known.find(module);
    if (entry == known.end()) return nullptr;
    PyObject *alive = nullptr;
    (void)PyWeakref_GetRef(entry->second.reference, &alive);
    Py_XDECREF(alive); // the caller owns it
    return alive == module ? entry->second.path : nullptr;
}

// Removes the names of dead modules, if there are many names.
void forget_dead()
{
    static size_t next = 1024;
    std::vector<PyObject *> dead;
    if (known.size() < next) return;
    for (auto entry = known.begin(); entry != known.end();) {
        if (find(entry->first)) {
            ++entry;
        } else {
            dead.push_back(entry->second.reference);
            entry = known.erase(entry);
        }
    }
    next = known.size() * 2 + 1024;
    for (PyObject *reference : dead)
        Py_DECREF(reference);
}

// Returns the path of MODULE in the outermost module, beginning with that module's class. If MODULE is not in
// it, returns MODULE's own class.
Path path_of(PyObject *module, PyObject *outermost)
{
    if (Path own = find(module)) return own;
    std::unordered_set<PyObject *> seen;
    forget_dead();
    list(outermost, Py_TYPE(outermost)->tp_name, seen);
    if (!find(module)) keep(module, Py_TYPE(module)->tp_name);
    return find(module);
}

// --- calls ----------------------------------------------------------------------------------------

void set_path(Path to)
{
    path = to;
    enter_module(to ? to->data() : "", to ? to->size() : 0);
}

PyObject *call(PyObject *callable, PyObject *const *arguments, size_t count, PyObject *names)
{
    if (!tensors::receiver.load(std::memory_order_relaxed) || !PyVectorcall_NARGS(count))
        return original(callable, arguments, count, names);
    PyObject *module = arguments[0];
    const Path before = path;
    const bool is_root = !root;
    if (is_root) root = module;
    set_path(path_of(module, root));
    PyObject *result = original(callable, arguments, count, names);
    set_path(before);
    if (is_root) root = nullptr;
    return result;
}

void set_vectorcall(vectorcallfunc to)
{
    // Python has this function from 3.12 on. It also invalidates code that was specialized for the function.
    using Set = void (*)(PyFunctionObject *, vectorcallfunc);
    static const auto set = reinterpret_cast<Set>(dlsym(RTLD_DEFAULT, "PyFunction_SetVectorcall"));
    if (set)
        set(function, to);
    else
        function->vectorcall = to;
}

} // namespace modules

bool follow_modules(PyObject *function)
{
    if (!PyFunction_Check(function)) return false;
    if (modules::function) return true;
    modules::function = reinterpret_cast<PyFunctionObject *>(Py_NewRef(function));
    modules::original = modules::function->vectorcall;
    modules::set_vectorcall(modules::call);
    return true;
}

void unfollow_modules()
{
    if (!modules::function) return;
    // A function that was installed after ours still calls ours, which then only passes the call on.
    if (modules::function->vectorcall == modules::call) modules::set_vectorcall(modules::original);
    Py_CLEAR(modules::function);
    auto forgotten = std::exchange(modules::known, {});
    for (auto &entry : forgotten)
        Py_DECREF(entry.second.reference);
}

} // namespace kpytrace
