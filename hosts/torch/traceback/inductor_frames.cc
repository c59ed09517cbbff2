#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hosts/torch/traceback/inductor_frames.h"

namespace kpytrace
{
namespace
{

thread_local PyObject *asked; // torch's function, of the innermost AskingTorch

PyObject *attribute(PyObject *object, const char *name)
{
    PyObject *value = object ? PyObject_GetAttrString(object, name) : nullptr;
    PyErr_Clear();
    return value;
}

// Reads the bytes of TEXT, which live as long as TEXT and HOLD. Returns false with an exception.
bool bytes_of(PyObject *text, PyObject **hold, kpt_str &out)
{
    Py_ssize_t size = 0;
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "the name of a generated frame must be a string");
        return false;
    }
    out.data = PyUnicode_AsUTF8AndSize(text, &size);
    if (!out.data) {
        PyErr_Clear();
        *hold = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
        if (!*hold) return false;
        out.data = PyBytes_AS_STRING(*hold);
        size = PyBytes_GET_SIZE(*hold);
    }
    out.size = static_cast<uint64_t>(size);
    return true;
}

// Returns false with an exception.
bool add_one(PyObject *frame, kpt_add_frame_fn add, void *add_ctx)
{
    PyObject *holds[2] = {nullptr, nullptr};
    kpt_str texts[2];
    PyObject *name = PyMapping_GetItemString(frame, "name");
    PyObject *file = name ? PyMapping_GetItemString(frame, "filename") : nullptr;
    PyObject *line = file ? PyMapping_GetItemString(frame, "line") : nullptr;
    unsigned long number = line ? PyLong_AsUnsignedLong(line) : 0;
    bool done = line && !PyErr_Occurred() && bytes_of(name, &holds[0], texts[0]) &&
                bytes_of(file, &holds[1], texts[1]);
    if (done) add(add_ctx, texts[0], texts[1], static_cast<uint32_t>(number));
    for (PyObject *held : {holds[0], holds[1], line, file, name})
        Py_XDECREF(held);
    return done;
}

bool add_all(PyObject *frames, kpt_add_frame_fn add, void *add_ctx)
{
    if (!frames) return false;
    if (frames == Py_None) return true;
    PyObject *list = PySequence_Tuple(frames);
    bool done = list != nullptr;
    for (Py_ssize_t i = 0; done && i < PyTuple_GET_SIZE(list); i++)
        done = add_one(PyTuple_GET_ITEM(list, i), add, add_ctx);
    Py_XDECREF(list);
    return done;
}

} // namespace

AskingTorch::AskingTorch(bool python) : outer_(asked)
{
    if (python) {
        PyObject *modules = PyImport_GetModuleDict(); // borrowed
        PyObject *module = PyMapping_GetItemString(modules, "torch._inductor.codecache");
        PyErr_Clear();
        PyObject *cache = attribute(module, "PyCodeCache");
        function_ = attribute(cache, "stack_frames_for_code");
        Py_XDECREF(cache);
        Py_XDECREF(module);
    }
    asked = function_;
}

AskingTorch::~AskingTorch()
{
    asked = outer_;
    Py_XDECREF(function_);
}

void add_generated(void *, kpt_str file, uint32_t line, kpt_add_frame_fn add, void *add_ctx)
{
    if (!asked) return;
    PyObject *name =
        PyUnicode_DecodeUTF8(file.data, static_cast<Py_ssize_t>(file.size), "backslashreplace");
    PyObject *frames =
        name ? PyObject_CallFunction(asked, "Ok", name, static_cast<unsigned long>(line)) : nullptr;
    if (!add_all(frames, add, add_ctx)) PyErr_WriteUnraisable(asked);
    Py_XDECREF(frames);
    Py_XDECREF(name);
}

} // namespace kpytrace
