/* generated_frames.c: the frames that a line of generated Python stands for. It calls the functions that were
 * registered with the package, the last one first, then torch's compiler. An exception in a function is
 * reported as unraisable, and that frame gets no generated frames. */
#include "hosts/standalone/module/traceback/generated_frames.h"

#include "hosts/standalone/module/traceback/symbolize_batch.h"

/* Returns NULL without an exception if there is no such attribute. */
static PyObject *get_if_there(PyObject *object, const char *name)
{
    PyObject *value = object ? PyObject_GetAttrString(object, name) : NULL;
    if (object && !value) PyErr_Clear();
    return value;
}

PyObject *kpti_find_codecache(void)
{
    PyObject *modules = PySys_GetObject("modules"); /* borrowed */
    PyObject *module =
        modules ? PyMapping_GetItemString(modules, "torch._inductor.codecache") : NULL;
    PyObject *cache;
    PyObject *function;
    PyErr_Clear();
    cache = get_if_there(module, "PyCodeCache");
    function = get_if_there(cache, "stack_frames_for_code");
    Py_XDECREF(cache);
    Py_XDECREF(module);
    return function;
}

/* --- an answer -------------------------------------------------------------------------------- */

/* Reads TEXT as bytes. *HOLD receives an object that keeps the bytes alive, if one is needed. Returns 0 with an
 * exception. */
static int read_text(PyObject *text, PyObject **hold, kpt_str *out)
{
    Py_ssize_t size = 0;
    if (!text) return 0;
    if (!PyUnicode_Check(text)) {
        PyErr_SetString(PyExc_TypeError, "a generated frame's name and filename must be strings");
        return 0;
    }
    out->data = PyUnicode_AsUTF8AndSize(text, &size);
    if (!out->data) {
        PyErr_Clear();
        *hold = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
        if (!*hold) return 0;
        out->data = PyBytes_AsString(*hold);
        size = PyBytes_Size(*hold);
    }
    out->size = (uint64_t)size;
    return 1;
}

/* Returns the number of a line, or -1 with an exception. */
static long long read_line(PyObject *line)
{
    const long long number = line ? PyLong_AsLongLong(line) : -1;
    if (number == -1 && PyErr_Occurred()) return -1;
    if (number >= 0 && number <= INT32_MAX) return number;
    PyErr_SetString(PyExc_ValueError, "a generated frame's line must be 0 to 2147483647");
    return -1;
}

typedef struct answer {
    kpt_add_frame_fn add;
    void *add_ctx;
} answer;

/* Returns 1, or 0 with an exception. */
static int add_frame(PyObject *frame, const answer *to)
{
    PyObject *name = PyMapping_GetItemString(frame, "name");
    PyObject *file = name ? PyMapping_GetItemString(frame, "filename") : NULL;
    PyObject *line = file ? PyMapping_GetItemString(frame, "line") : NULL;
    PyObject *holds[2] = {NULL, NULL};
    kpt_str name_text;
    kpt_str file_text;
    const long long number = line ? read_line(line) : -1;
    const int read = number >= 0 && read_text(name, &holds[0], &name_text) &&
                     read_text(file, &holds[1], &file_text);
    if (read) to->add(to->add_ctx, name_text, file_text, (uint32_t)number);
    Py_XDECREF(holds[0]);
    Py_XDECREF(holds[1]);
    Py_XDECREF(line);
    Py_XDECREF(file);
    Py_XDECREF(name);
    return read;
}

static int add_frames(PyObject *frames, const answer *to)
{
    PyObject *tuple = PySequence_Tuple(frames);
    int done = tuple != NULL;
    for (Py_ssize_t i = 0; done && i < PyTuple_Size(tuple); i++)
        done = add_frame(PyTuple_GetItem(tuple, i), to);
    Py_XDECREF(tuple);
    return done;
}

/* Returns 1 if FUNCTION returned frames or failed. No other function is called then. */
static int ask(PyObject *function, PyObject *file, uint32_t line, const answer *to)
{
    PyObject *frames = PyObject_CallFunction(function, "Ok", file, (unsigned long)line);
    int known = frames != Py_None;
    if (known && (!frames || !add_frames(frames, to))) PyErr_WriteUnraisable(function);
    Py_XDECREF(frames);
    return known;
}

static void ask_all(const kpti_batch *batch, kpt_str file, uint32_t line, const answer *to)
{
    const Py_ssize_t count = batch->generated ? PyTuple_Size(batch->generated) : 0;
    PyObject *name = PyUnicode_DecodeUTF8(file.data, (Py_ssize_t)file.size, "backslashreplace");
    int known = !name;
    if (!name) PyErr_WriteUnraisable(NULL);
    for (Py_ssize_t i = count; !known && i-- > 0;)
        known = ask(PyTuple_GetItem(batch->generated, i), name, line, to);
    if (!known && batch->codecache) (void)ask(batch->codecache, name, line, to);
    Py_XDECREF(name);
}

void kpti_generated(void *ctx, kpt_str file, uint32_t line, kpt_add_frame_fn add, void *add_ctx)
{
    kpti_batch *batch = kpti_batch_current();
    const answer to = {add, add_ctx};
    (void)ctx;
    if (!batch || (!batch->codecache && !batch->generated)) return;
    kpti_batch_take_gil(batch);
    ask_all(batch, file, line, &to);
    kpti_batch_give_gil(batch);
}
