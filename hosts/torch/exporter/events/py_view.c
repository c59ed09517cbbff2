#include "hosts/torch/exporter/events/py_view.h"

int kpti_py_view_make(kpti_py_table *table, PyObject *options, kpti_view *view, kpti_sums *sums)
{
    const char *keys;
    const char *flags;
    Py_ssize_t key_bytes;
    Py_ssize_t flag_bytes;
    long long base_ns;
    const size_t names = (size_t)table->table.names.count + 1;
    kpt_status status;
    memset(view, 0, sizeof *view);
    if (sums) memset(sums, 0, sizeof *sums);
    view->table = &table->table;
    if (!PyArg_ParseTuple(options, "y#y#Lpp", &keys, &key_bytes, &flags, &flag_bytes, &base_ns,
                          &view->options.has_device, &view->options.sums_exactly))
        return 0;
    if ((size_t)key_bytes < names * sizeof(uint32_t) || (size_t)flag_bytes < names) {
        PyErr_SetString(PyExc_ValueError, "each name needs a key and flags");
        return 0;
    }
    view->options.keys = (const uint32_t *)(const void *)keys;
    view->options.flags = (const uint8_t *)flags;
    view->options.base_ns = base_ns;
    Py_BEGIN_ALLOW_THREADS;
    status = kpti_view_make(view);
    if (sums && status == KPT_OK) {
        sums->view = view;
        status = kpti_sums_make(sums, table->shows & KPTI_TABLE_FLOPS);
    }
    Py_END_ALLOW_THREADS;
    if (status != KPT_OK) PyErr_NoMemory();
    return status == KPT_OK;
}

PyObject *kpti_py_view_stack(const kpti_py_table *table, const kpti_view *view, uint32_t stack,
                             uint32_t max)
{
    const kpti_event_stack *const stacks = view->table->stacks;
    PyObject *list = PyList_New(0);
    uint32_t size = 0;
    for (uint32_t at = kpti_view_frame(view, stack); list && at && (!max || size < max);
         at = kpti_view_frame(view, stacks[at].caller), size++)
        if (PyList_Append(list, PyList_GetItem(table->names, (Py_ssize_t)stacks[at].name)) < 0)
            Py_CLEAR(list);
    return list;
}

int kpti_py_set(PyObject *dict, const char *key, PyObject *value)
{
    const int done = value && PyDict_SetItemString(dict, key, value) == 0;
    Py_XDECREF(value);
    return done;
}

PyObject *kpti_py_object(PyObject *type, PyObject *dict)
{
    const allocfunc make = (allocfunc)PyType_GetSlot((PyTypeObject *)type, Py_tp_alloc);
    PyObject *made = make((PyTypeObject *)type, 0);
    if (made && PyObject_GenericSetDict(made, dict, NULL) < 0) Py_CLEAR(made);
    Py_DECREF(dict);
    return made;
}
