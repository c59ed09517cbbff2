/* The averages of a view as objects of a class like torch's FunctionEventAvg. */
#include "hosts/torch/exporter/events/py_view.h"

typedef struct maker {
    kpti_py_table *table;
    kpti_view view;
    kpti_sums sums;
    PyObject *kind;
    PyObject *model; /* the attributes of an average that torch made */
    PyObject *names; /* the keys of averages, by name */
    int with_shapes;
} maker;

static PyObject *time_of(kpti_time time)
{
    return time.is_float ? PyFloat_FromDouble(time.us) : PyLong_FromLong(0);
}

static int set_sums(PyObject *dict, const kpti_average *average)
{
    const kpti_row_times *const times = &average->times;
    return kpti_py_set(dict, "count", PyLong_FromUnsignedLongLong(average->count)) &&
           kpti_py_set(dict, "cpu_time_total", time_of(times->cpu)) &&
           kpti_py_set(dict, "self_cpu_time_total", time_of(times->self_cpu)) &&
           kpti_py_set(dict, "device_time_total", time_of(times->device)) &&
           kpti_py_set(dict, "self_device_time_total", time_of(times->self_device)) &&
           kpti_py_set(dict, "cpu_memory_usage", PyLong_FromLongLong(average->cpu_bytes)) &&
           kpti_py_set(dict, "device_memory_usage", PyLong_FromLongLong(average->device_bytes)) &&
           kpti_py_set(dict, "self_cpu_memory_usage", PyLong_FromLongLong(times->self_cpu_bytes)) &&
           kpti_py_set(dict, "self_device_memory_usage",
                       PyLong_FromLongLong(times->self_device_bytes)) &&
           kpti_py_set(dict, "flops", PyLong_FromUnsignedLongLong(average->flops));
}

/* The attributes of the row that an average is named after. ROW is stored, from which callers find its event. */
static int set_row(maker *m, PyObject *dict, const kpti_average *average)
{
    const kpti_row *const row = &m->view.rows[average->row];
    const kpti_event *const event = kpti_view_event(&m->view, row);
    PyObject *const shapes = kpti_py_table_inputs(m->table, event->inputs, KPTI_INPUT_SHAPES);
    return kpti_py_set(dict, "key", Py_NewRef(PyList_GetItem(m->names, (Py_ssize_t)event->name))) &&
           kpti_py_set(dict, "is_async", PyBool_FromLong(event->flags & KPTI_EVENT_ASYNC)) &&
           kpti_py_set(dict, "scope", PyLong_FromLong(event->scope)) &&
           kpti_py_set(
               dict, "device_type",
               Py_NewRef(kpti_event_is_on_device(event) ? m->table->cuda : m->table->cpu)) &&
           kpti_py_set(dict, "is_user_annotation",
                       kpti_py_field(m->table, event, KPTI_FIELD_is_user_annotation)) &&
           (!m->with_shapes || kpti_py_set(dict, "input_shapes", Py_XNewRef(shapes))) &&
           kpti_py_set(dict, "_kpytrace_row", PyLong_FromUnsignedLong(average->row));
}

static PyObject *make(maker *m, const kpti_average *average, uint32_t stack_size, int is_total)
{
    PyObject *const dict = PyDict_Copy(m->model);
    PyObject *stack;
    if (!dict) return NULL;
    stack =
        stack_size || is_total
            ? kpti_py_view_stack(m->table, &m->view, m->view.rows[average->row].stack, stack_size)
            : PyList_New(0);
    if (set_sums(dict, average) && set_row(m, dict, average) && kpti_py_set(dict, "stack", stack))
        return kpti_py_object(m->kind, dict);
    Py_DECREF(dict);
    return NULL;
}

static PyObject *make_all(maker *m, uint32_t stack_size, int is_total)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < m->sums.count; i++) {
        PyObject *const one = make(m, &m->sums.averages[i], stack_size, is_total);
        if (!one || PyList_Append(list, one) < 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

/* Adds up the rows. SHAPES has a number for each inputs, or is empty. */
static int add_up(maker *m, const char *shapes, uint32_t stack_size, int is_total, int has_calls)
{
    const kpti_grouping grouping = {(const uint32_t *)(const void *)shapes, stack_size, has_calls};
    kpt_status status;
    Py_BEGIN_ALLOW_THREADS;
    if (is_total)
        status = m->view.count ? kpti_sums_total(&m->sums) : KPT_OK;
    else
        status = kpti_sums_group(&m->sums, &grouping);
    Py_END_ALLOW_THREADS;
    if (status != KPT_OK) PyErr_NoMemory();
    return status == KPT_OK;
}

PyObject *kpti_py_averages(PyObject *self, PyObject *args)
{
    maker m = {.table = (kpti_py_table *)self};
    PyObject *options;
    PyObject *list = NULL;
    const char *shapes;
    Py_ssize_t shape_bytes;
    unsigned int stack_size;
    int is_total;
    int has_calls;
    if (!PyArg_ParseTuple(args, "O!O!O!O!z#Ipp", &PyTuple_Type, &options, &PyType_Type, &m.kind,
                          &PyDict_Type, &m.model, &PyList_Type, &m.names, &shapes, &shape_bytes,
                          &stack_size, &is_total, &has_calls))
        return NULL;
    m.with_shapes = shapes || is_total;
    if (shapes && (size_t)shape_bytes < ((size_t)m.table->table.input_count + 1) * sizeof(uint32_t))
        return PyErr_Format(PyExc_ValueError, "each inputs need a number");
    if (kpti_py_view_make(m.table, options, &m.view, &m.sums) &&
        add_up(&m, shapes, stack_size, is_total, has_calls))
        list = make_all(&m, stack_size, is_total);
    kpti_sums_free(&m.sums);
    kpti_view_free(&m.view);
    return list;
}

PyObject *kpti_py_self_cpu(PyObject *self, PyObject *args)
{
    kpti_view view;
    kpti_sums sums;
    PyObject *options;
    PyObject *time = NULL;
    if (!PyArg_ParseTuple(args, "O!", &PyTuple_Type, &options)) return NULL;
    if (kpti_py_view_make((kpti_py_table *)self, options, &view, &sums))
        time = time_of(kpti_sums_self_cpu(&sums));
    kpti_sums_free(&sums);
    kpti_view_free(&view);
    return time;
}
