/* traceback_type.c: the type Traceback. An object owns the numbers of one traceback. Freeing the object
 * releases them, which acquires no lock and runs no Python. Text for users is made by the package. */
#include "hosts/standalone/module/traceback/traceback_type.h"

#include <structmember.h>

#include "hosts/standalone/module/traceback/symbolize_tracebacks.h"
#include "hosts/standalone/module/traceback/traceback_dicts.h"
#include "hosts/standalone/module/traceback/traceback_json.h"
#include "hosts/standalone/session/shared_tracebacks.h"

/* Safe without the type's lock: `words` is set once, and cleared only when no other thread can reach the
 * object. It is not _Atomic, since Py_VISIT and Py_CLEAR take a plain pointer. */
static PyObject *get_words(kpti_traceback_object *self)
{
    return __atomic_load_n(&self->words, __ATOMIC_ACQUIRE);
}

/* Stores WORDS unless another thread has stored its own before. Returns the stored object. Takes over the
 * reference. */
static PyObject *keep_words(kpti_traceback_object *self, PyObject *words)
{
    PyObject *first = NULL;
    if (__atomic_compare_exchange_n(&self->words, &first, words, 0, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return words;
    Py_DECREF(words);
    return first;
}

/* --- memory ----------------------------------------------------------------------------------- */

typedef struct visitor {
    visitproc visit;
    void *arg;
} visitor;

static int visit_object(void *object, void *ctx)
{
    const visitor *v = ctx;
    return object ? v->visit(object, v->arg) : 0;
}

static int traverse(PyObject *object, visitproc visit, void *arg)
{
    kpti_traceback_object *self = (kpti_traceback_object *)object;
    const kpt_tracebacks *process = kpti_tracebacks();
    visitor v = {visit, arg};
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->module);
    Py_VISIT(self->words);
    if (process) (void)process->ops->traverse(process->self, &self->traceback, visit_object, &v);
    return 0;
}

static int clear(PyObject *object)
{
    kpti_traceback_object *self = (kpti_traceback_object *)object;
    const kpt_tracebacks *process = kpti_tracebacks();
    Py_CLEAR(self->words);
    if (process) (void)process->ops->clear(process->self, &self->traceback);
    return 0;
}

kpti_traceback_object *kpti_new_traceback(PyObject *module, kpti_module_state *state)
{
    kpti_traceback_object *self;
    if (!kpti_state_is_whole(state)) return NULL;
    if (state->spare_count) {
        self = state->spares[--state->spare_count];
        (void)PyObject_Init((PyObject *)self, state->traceback_type);
    } else {
        self = PyObject_GC_New(kpti_traceback_object, state->traceback_type);
        if (!self) return NULL;
    }
    self->module = Py_NewRef(module);
    self->words = NULL;
    self->weak_references = NULL;
    return self;
}

void kpti_free_spares(kpti_module_state *state)
{
    while (state->spare_count)
        PyObject_GC_Del(state->spares[--state->spare_count]);
}

static int keep_spare(kpti_traceback_object *self, PyObject *module)
{
    kpti_module_state *state;
    if (!KPTI_SPARES_ARE_KEPT) return 0;
    state = PyModule_GetState(module);
    if (!state->traceback_type || state->spare_count >= KPTI_MAX_SPARES) return 0;
    state->spares[state->spare_count++] = self;
    return 1;
}

static void dealloc(PyObject *object)
{
    kpti_traceback_object *self = (kpti_traceback_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject *module = self->module;
    const kpt_tracebacks *process = kpti_tracebacks();
    PyObject_GC_UnTrack(object);
    if (self->weak_references) PyObject_ClearWeakRefs(object);
    if (process) (void)process->ops->release(process->self, &self->traceback, 1);
    Py_CLEAR(self->words);
    if (!keep_spare(self, module)) PyObject_GC_Del(object);
    Py_DECREF(type);
    Py_DECREF(module);
}

/* --- methods ---------------------------------------------------------------------------------- */

static PyObject *symbolize_alone(PyObject *self, kpt_symbols_fn sink)
{
    kpti_module_state *state = PyModule_GetState(((kpti_traceback_object *)self)->module);
    PyObject *alone = PyTuple_Pack(1, self);
    PyObject *result = alone ? kpti_symbolize(state, alone, sink, 1) : NULL;
    Py_XDECREF(alone);
    return result;
}

PyDoc_STRVAR(
    symbolize_doc,
    "symbolize() -> the frames as dictionaries, innermost first; each call returns the same list");
static PyObject *symbolize(PyObject *object, PyObject *unused)
{
    kpti_traceback_object *self = (kpti_traceback_object *)object;
    PyObject *words = get_words(self);
    (void)unused;
    if (!words) {
        PyObject *list = symbolize_alone(object, kpti_traceback_words);
        if (!list) return NULL;
        words = PySequence_GetItem(list, 0);
        Py_DECREF(list);
        if (!words) return NULL;
        words = keep_words(self, words);
    }
    return Py_NewRef(words);
}

PyDoc_STRVAR(json_doc, "json() -> the result of symbolize() as a JSON text");
static PyObject *json(PyObject *self, PyObject *unused)
{
    (void)unused;
    return symbolize_alone(self, kpti_traceback_json);
}

static PyObject *call_package(const char *name, PyObject *self)
{
    PyObject *package = PyImport_ImportModule("kpytrace.traceback");
    PyObject *result = package ? PyObject_CallMethod(package, name, "O", self) : NULL;
    Py_XDECREF(package);
    return result;
}

PyDoc_STRVAR(summary_doc, "summary() -> a traceback.StackSummary, outermost frame first");
static PyObject *summary(PyObject *self, PyObject *unused)
{
    (void)unused;
    return call_package("_summary", self);
}

PyDoc_STRVAR(format_doc, "format() -> a list of strings, as traceback.format_list makes them");
static PyObject *format(PyObject *self, PyObject *unused)
{
    (void)unused;
    return call_package("format", self);
}

static PyObject *to_string(PyObject *self)
{
    return call_package("_string", self);
}

static PyObject *reduce(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    PyErr_SetString(PyExc_TypeError, "a Traceback can't be pickled because its numbers are valid "
                                     "only in this process: pickle the result of its symbolize()");
    return NULL;
}

/* The object is immutable, so it is its own copy. */
static PyObject *copy(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

static PyObject *get_cut(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong((((kpti_traceback_object *)self)->traceback.flags & KPT_TRACEBACK_CUT) !=
                           0);
}

static PyMethodDef methods[] = {
    {"symbolize", symbolize, METH_NOARGS, symbolize_doc},
    {"json", json, METH_NOARGS, json_doc},
    {"summary", summary, METH_NOARGS, summary_doc},
    {"format", format, METH_NOARGS, format_doc},
    {"__reduce__", reduce, METH_NOARGS, NULL},
    {"__copy__", copy, METH_NOARGS, NULL},
    {"__deepcopy__", copy, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"cut", get_cut, NULL, "True if the stack had more frames than the traceback.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(kpti_traceback_object, weak_references), READONLY,
     NULL},
    {NULL, 0, 0, 0, NULL},
};

PyDoc_STRVAR(type_doc, "The stack of a thread as a few numbers, made by gather(). It keeps no code "
                       "and no frame alive.");
static PyType_Slot slots[] = {
    {Py_tp_doc, (void *)type_doc}, {Py_tp_dealloc, dealloc}, {Py_tp_traverse, traverse},
    {Py_tp_clear, clear},          {Py_tp_str, to_string},   {Py_tp_methods, methods},
    {Py_tp_getset, attributes},    {Py_tp_members, members}, {0, NULL},
};

static PyType_Spec spec = {
    .name = "kpytrace.traceback.Traceback",
    .basicsize = sizeof(kpti_traceback_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION |
             Py_TPFLAGS_IMMUTABLETYPE,
    .slots = slots,
};

PyTypeObject *kpti_make_traceback_type(PyObject *module)
{
    return (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
}
