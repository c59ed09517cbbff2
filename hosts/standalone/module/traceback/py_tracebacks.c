/* py_tracebacks.c: see py_tracebacks.h. gather is called often and must be fast. */
#include "hosts/standalone/module/traceback/py_tracebacks.h"

#include <stdlib.h>

#include "abi/kpt_text.h"
#include "hosts/standalone/module/traceback/symbolize_tracebacks.h"
#include "hosts/standalone/module/traceback/traceback_dicts.h"
#include "hosts/standalone/module/traceback/traceback_json.h"
#include "hosts/standalone/module/traceback/traceback_type.h"

/* --- gather ----------------------------------------------------------------------------------- */

typedef struct wanted {
    uint32_t what;
    uint32_t depth;
    uint32_t skip;
} wanted;

enum { PYTHON, SCRIPT, CPP, DEPTH, SKIP, ARGUMENTS };
static const char *const argument_names[ARGUMENTS] = {"python", "script", "cpp", "depth", "skip"};

static int read_number(PyObject *value, const char *name, uint32_t *out)
{
    const long long number = PyLong_AsLongLong(value);
    if (number == -1 && PyErr_Occurred()) return 0;
    if (number < 0 || number > INT32_MAX) {
        PyErr_Format(PyExc_ValueError, "%s must be 0 to %d, not %lld", name, INT32_MAX, number);
        return 0;
    }
    *out = (uint32_t)number;
    return 1;
}

/* Returns 1, or 0 with an exception. */
static int read_argument(int which, PyObject *value, wanted *out)
{
    static const uint32_t bits[] = {
        [PYTHON] = KPT_GATHER_PYTHON, [SCRIPT] = KPT_GATHER_SCRIPT, [CPP] = KPT_GATHER_NATIVE};
    int truth;
    if (which == DEPTH) return read_number(value, "depth", &out->depth);
    if (which == SKIP) return read_number(value, "skip", &out->skip);
    truth = PyObject_IsTrue(value);
    if (truth < 0) return 0;
    out->what = truth ? out->what | bits[which] : out->what & ~bits[which];
    return 1;
}

/* Returns the index of the argument NAME, or -1 with an exception. */
static int find_argument(PyObject *name, Py_ssize_t by_position)
{
    for (int i = 0; i < ARGUMENTS; i++) {
        if (PyUnicode_CompareWithASCIIString(name, argument_names[i]) != 0) continue;
        if (i >= by_position) return i;
        PyErr_Format(PyExc_TypeError, "gather() got multiple values for argument '%U'", name);
        return -1;
    }
    PyErr_Format(PyExc_TypeError, "gather() got an unexpected keyword argument '%U'", name);
    return -1;
}

static int read_arguments(PyObject *const *args, Py_ssize_t count, PyObject *names, wanted *out)
{
    const Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    if (count > ARGUMENTS) {
        PyErr_Format(PyExc_TypeError, "gather() takes at most %d arguments (%zd given)", ARGUMENTS,
                     count + named);
        return 0;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (!read_argument((int)i, args[i], out)) return 0;
    for (Py_ssize_t i = 0; i < named; i++) {
        const int which = find_argument(PyTuple_GetItem(names, i), count);
        if (which < 0 || !read_argument(which, args[count + i], out)) return 0;
    }
    if (!out->skip) return 1;
    if (out->depth) out->depth += out->skip; /* no overflow: both are below 2^31 */
    if (!(out->what & ~(uint32_t)KPT_GATHER_PYTHON)) return 1;
    PyErr_SetString(PyExc_ValueError,
                    "skip counts Python frames: it can't be used with script or cpp");
    return 0;
}

PyDoc_STRVAR(gather_doc, "gather(python=True, script=False, cpp=False, depth=0, skip=0)\n--\n\n"
                         "Returns the stack of the calling thread as a Traceback.\n\n"
                         "python  include Python frames\n"
                         "script  include frames of a script language that the host runs\n"
                         "cpp     include frames of C and C++\n"
                         "depth   maximum number of frames of each kind, innermost first; 0 = all\n"
                         "skip    number of innermost Python frames to omit");
/* Budget: one call of the plugin, one object and 20 ns. */
static PyObject *gather(PyObject *module, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    kpti_module_state *state = PyModule_GetState(module);
    const kpt_tracebacks *process = kpti_need_tracebacks();
    wanted wish = {KPT_GATHER_PYTHON, 0, 0};
    kpti_traceback_object *made;
    kpt_status status = KPT_OK;
    if (!process || ((count || names) && !read_arguments(args, count, names, &wish))) return NULL;
    made = kpti_new_traceback(module, state);
    if (!made) return NULL;
    memset(&made->traceback, 0, sizeof made->traceback);
    made->skip = wish.skip;
    if (wish.what)
        status = process->ops->gather(process->self, wish.what, wish.depth, &made->traceback);
    PyObject_GC_Track((PyObject *)made);
    if (status == KPT_OK) return (PyObject *)made;
    Py_DECREF(made);
    PyErr_Format(PyExc_RuntimeError, "cannot gather a traceback: %s", kpt_status_name(status));
    return NULL;
}

/* --- symbolizing --------------------------------------------------------------------- */

PyDoc_STRVAR(
    symbolize_doc,
    "symbolize(tracebacks)\n--\n\n"
    "Returns a list of frames for each traceback, innermost first, each a dictionary. Equal\n"
    "frames share a dictionary, and equal tracebacks share a list.");
static PyObject *symbolize(PyObject *module, PyObject *sequence)
{
    return kpti_symbolize(PyModule_GetState(module), sequence, kpti_traceback_words, 0);
}

PyDoc_STRVAR(symbolize_json_doc, "symbolize_json(tracebacks)\n--\n\n"
                                 "Returns the result of symbolize() as a JSON text.");
static PyObject *symbolize_json(PyObject *module, PyObject *sequence)
{
    return kpti_symbolize(PyModule_GetState(module), sequence, kpti_traceback_json, 0);
}

/* --- other functions ---------------------------------------------------------------------------- */

PyDoc_STRVAR(free_dead_doc, "free_dead(most=0)\n--\n\n"
                            "Frees up to MOST nodes of released tracebacks, 0 = all. Returns the "
                            "number of nodes that are left.");
static PyObject *free_dead(PyObject *module, PyObject *args)
{
    const kpt_tracebacks *process = kpti_need_tracebacks();
    unsigned long long max = 0;
    uint64_t left = 0;
    kpt_status status;
    (void)module;
    if (!process || !PyArg_ParseTuple(args, "|K", &max)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = process->ops->free_dead(process->self, max, &left);
    Py_END_ALLOW_THREADS;
    if (status != KPT_OK)
        return kpti_raise_traceback(status, "cannot free the nodes of released tracebacks");
    return PyLong_FromUnsignedLongLong(left);
}

PyDoc_STRVAR(stats_doc, "traceback_stats() -> the counters of all tracebacks in the process");
static PyObject *stats(PyObject *module, PyObject *unused)
{
    const kpt_tracebacks *process = kpti_need_tracebacks();
    kpt_traceback_stats values;
    kpt_status status;
    (void)module;
    (void)unused;
    if (!process) return NULL;
    KPT_INIT(&values);
    status = process->ops->get_stats(process->self, &values);
    if (status != KPT_OK) return kpti_raise_traceback(status, "cannot read the counters");
    return Py_BuildValue("{s:K,s:K,s:K,s:K}", "stacks", (unsigned long long)values.stacks, "dead",
                         (unsigned long long)values.dead, "places",
                         (unsigned long long)values.places, "bytes_held",
                         (unsigned long long)values.bytes_held);
}

PyDoc_STRVAR(set_generated_doc,
             "set_generated(functions): sets the functions that return generated frames");
static PyObject *set_generated(PyObject *module, PyObject *functions)
{
    kpti_module_state *state = PyModule_GetState(module);
    PyObject *tuple = PySequence_Tuple(functions);
    PyObject *old;
    if (!tuple) return NULL;
    kpti_state_take(&state->generated_lock);
    old = state->generated;
    state->generated = tuple;
    kpti_state_give(&state->generated_lock);
    Py_XDECREF(old);
    return Py_NewRef(Py_None);
}

static PyMethodDef functions[] = {
    {"gather", (PyCFunction)(void (*)(void))gather, METH_FASTCALL | METH_KEYWORDS, gather_doc},
    {"symbolize", symbolize, METH_O, symbolize_doc},
    {"symbolize_json", symbolize_json, METH_O, symbolize_json_doc},
    {"free_dead", free_dead, METH_VARARGS, free_dead_doc},
    {"traceback_stats", stats, METH_NOARGS, stats_doc},
    {"set_generated", set_generated, METH_O, set_generated_doc},
    {NULL, NULL, 0, NULL},
};

static int fill_state(kpti_module_state *state, PyObject *module)
{
    state->traceback_type = kpti_make_traceback_type(module);
    state->generated = PyTuple_New(0);
    if (!state->traceback_type || !state->generated) return -1;
    for (int i = 0; i < KPTI_KEYS; i++)
        if (!(state->keys[i] = PyUnicode_InternFromString(kpti_frame_keys[i]))) return -1;
    for (int i = 0; i < KPTI_KINDS; i++)
        if (!(state->kinds[i] = PyUnicode_InternFromString(kpti_frame_kinds[i]))) return -1;
    return 0;
}

int kpti_add_tracebacks(PyObject *module)
{
    kpti_module_state *state = PyModule_GetState(module);
    if (fill_state(state, module) != 0 || PyModule_AddFunctions(module, functions) != 0) return -1;
    return PyModule_AddType(module, state->traceback_type);
}
