#include "hosts/torch/exporter/events/py_table.h"

#include <unistd.h>

#include "hosts/torch/exporter/py_exporter.h"

/* --- an event --------------------------------------------------------------------------------- */

typedef struct py_event {
    PyObject_HEAD kpti_py_table *table;
    uint32_t index;
} py_event;

/* A list of the table's is copied, since torch's events have lists of their own. */
static PyObject *event_value(PyObject *self, kpti_event_field field)
{
    const py_event *const e = (const py_event *)self;
    PyObject *const value = kpti_py_field(e->table, &e->table->table.events[e->index], field);
    PyObject *copy;
    if (!value || !PyList_Check(value) || field == KPTI_FIELD_stack) return value;
    copy = PyList_GetSlice(value, 0, PyList_Size(value));
    Py_DECREF(value);
    return copy;
}

#define KPTI_METHOD(name)                                         \
    static PyObject *event_##name(PyObject *self, PyObject *none) \
    {                                                             \
        (void)none;                                               \
        return event_value(self, KPTI_FIELD_##name);              \
    }
KPTI_EVENT_FIELDS(KPTI_METHOD)
#undef KPTI_METHOD

static PyMethodDef event_methods[] = {
#define KPTI_METHOD(name) {#name, event_##name, METH_NOARGS, NULL},
    KPTI_EVENT_FIELDS(KPTI_METHOD)
#undef KPTI_METHOD
        {NULL, NULL, 0, NULL},
};

static void free_event(PyObject *self)
{
    PyTypeObject *const type = Py_TYPE(self);
    Py_XDECREF((PyObject *)((py_event *)self)->table);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyType_Slot event_slots[] = {
    {Py_tp_doc, "An event of a native profile, with the methods of torch's."},
    {Py_tp_dealloc, free_event},
    {Py_tp_methods, event_methods},
    {0, NULL},
};

static PyType_Spec event_spec = {
    .name = "kpytrace.torch._exporter.Event",
    .basicsize = sizeof(py_event),
    .flags = Py_TPFLAGS_DEFAULT |
             (1UL << 7), /* Py_TPFLAGS_DISALLOW_INSTANTIATION, no macro in the limited API */
    .slots = event_slots,
};

/* --- the table -------------------------------------------------------------------------------- */

static PyObject *make_names(const kpti_event_names *names)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i <= names->count; i++) {
        const kpt_str text = i ? names->texts[i] : (kpt_str){"", 0};
        PyObject *const one = PyUnicode_DecodeUTF8(text.data, (Py_ssize_t)text.size, "replace");
        if (!one || PyList_Append(list, one) < 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

/* What the profile did not ask for is left out. */
static void hide(kpti_event_table *t, int shows)
{
    for (uint32_t i = 0; i < t->count; i++) {
        if (!(shows & KPTI_TABLE_STACKS)) t->events[i].stack = 0;
        if (!(shows & KPTI_TABLE_INPUTS)) t->events[i].inputs = 0;
    }
}

static int fill(kpti_py_table *p, const kpti_torch_recording *recording, const kpti_gpu_log *gpu)
{
    kpt_status status;
    Py_BEGIN_ALLOW_THREADS;
    status = kpti_event_table_make(&p->table, recording, gpu);
    if (status == KPT_OK) hide(&p->table, p->shows);
    Py_END_ALLOW_THREADS;
    if (status == KPT_E_MEMORY) PyErr_NoMemory();
    if (status != KPT_OK && status != KPT_E_MEMORY)
        PyErr_Format(PyExc_RuntimeError, "kpytrace: the recording can't be read: %s",
                     kpt_status_name(status));
    p->pid = (long)getpid();
    return status == KPT_OK && (p->names = make_names(&p->table.names)) &&
           (p->none = PyList_New(0)) && (p->cpu = PyObject_GetAttrString(p->device_type, "CPU")) &&
           (p->cuda = PyObject_GetAttrString(p->device_type, "CUDA"));
}

PyDoc_STRVAR(table_doc, "EventTable(recording, GPU log or None, what the profile asked for, "
                        "torch's DeviceType)\n\nThe events of a recording.");
static PyObject *new_table(PyTypeObject *type, PyObject *args, PyObject *options)
{
    PyObject *capsule;
    PyObject *device_type;
    PyObject *log;
    const kpti_gpu_log *gpu;
    int shows;
    const kpti_torch_recording *recording;
    kpti_py_table *p;
    (void)options;
    if (!PyArg_ParseTuple(args, "OOiO", &capsule, &log, &shows, &device_type) ||
        !kpti_recording_of(capsule, &recording) || !kpti_gpu_log_of(log, &gpu))
        return NULL;
    if (!recording) {
        PyErr_SetString(PyExc_TypeError, "there is no recording");
        return NULL;
    }
    p = (kpti_py_table *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!p) return NULL;
    p->shows = shows;
    p->device_type = Py_NewRef(device_type);
    p->event_type = PyObject_GetAttrString(PyType_GetModule(type), "Event");
    if (!p->event_type) {
        Py_DECREF((PyObject *)p);
        return NULL;
    }
    if (fill(p, recording, gpu)) return (PyObject *)p;
    Py_DECREF((PyObject *)p);
    return NULL;
}

static void free_lists(kpti_py_table *p)
{
    const size_t count = ((size_t)p->table.input_count + 1) * KPTI_INPUT_LISTS;
    for (size_t i = 0; p->lists && i < count; i++)
        Py_XDECREF(p->lists[i]);
    free(p->lists);
}

static void free_table(PyObject *self)
{
    PyTypeObject *const type = Py_TYPE(self);
    kpti_py_table *const p = (kpti_py_table *)self;
    free_lists(p);
    kpti_event_table_free(&p->table);
    Py_XDECREF(p->device_type);
    Py_XDECREF(p->event_type);
    Py_XDECREF(p->names);
    Py_XDECREF(p->none);
    Py_XDECREF(p->cpu);
    Py_XDECREF(p->cuda);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

PyDoc_STRVAR(events_doc, "events() -> a new list of all events");
static PyObject *events(PyObject *self, PyObject *none)
{
    kpti_py_table *const p = (kpti_py_table *)self;
    PyTypeObject *const type = (PyTypeObject *)p->event_type;
    const allocfunc make = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    PyObject *list = PyList_New((Py_ssize_t)p->table.count);
    (void)none;
    for (uint32_t i = 0; list && i < p->table.count; i++) {
        py_event *const event = (py_event *)make(type, 0);
        if (!event) {
            Py_CLEAR(list);
            break;
        }
        event->table = (kpti_py_table *)Py_NewRef(self);
        event->index = i;
        (void)PyList_SetItem(list, (Py_ssize_t)i, (PyObject *)event);
    }
    return list;
}

PyDoc_STRVAR(names_doc, "names() -> the names of the events, by number; the first is unused");
static PyObject *names(PyObject *self, PyObject *none)
{
    (void)none;
    return Py_NewRef(((kpti_py_table *)self)->names);
}

PyDoc_STRVAR(shapes_doc, "shapes() -> the shapes of the different inputs; the first are empty");
static PyObject *shapes(PyObject *self, PyObject *none)
{
    kpti_py_table *const p = (kpti_py_table *)self;
    PyObject *list = PyList_New(0);
    (void)none;
    for (uint32_t i = 0; list && i <= p->table.input_count; i++) {
        PyObject *const one = kpti_py_table_inputs(p, i, KPTI_INPUT_SHAPES);
        if (!one || PyList_Append(list, one) < 0) Py_CLEAR(list);
    }
    return list;
}

static PyMethodDef table_methods[] = {
    {"events", events, METH_NOARGS, events_doc},
    {"names", names, METH_NOARGS, names_doc},
    {"shapes", shapes, METH_NOARGS, shapes_doc},
    {"function_events", kpti_py_function_events, METH_VARARGS, NULL},
    {"averages", kpti_py_averages, METH_VARARGS, NULL},
    {"self_cpu", kpti_py_self_cpu, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot table_slots[] = {
    {Py_tp_doc, (void *)(uintptr_t)table_doc},
    {Py_tp_new, new_table},
    {Py_tp_dealloc, free_table},
    {Py_tp_methods, table_methods},
    {0, NULL},
};

static PyType_Spec table_spec = {
    .name = "kpytrace.torch._exporter.EventTable",
    .basicsize = sizeof(kpti_py_table),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = table_slots,
};

int kpti_py_table_add(PyObject *module)
{
    PyObject *const table = PyType_FromModuleAndSpec(module, &table_spec, NULL);
    PyObject *const event = table ? PyType_FromSpec(&event_spec) : NULL;
    const int done = event && PyModule_AddObjectRef(module, "EventTable", table) == 0 &&
                     PyModule_AddObjectRef(module, "Event", event) == 0;
    Py_XDECREF(table);
    Py_XDECREF(event);
    return done ? 0 : -1;
}
