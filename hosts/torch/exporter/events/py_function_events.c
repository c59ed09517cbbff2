/* The events of a view as objects of torch's class FunctionEvent, whose constructor and tree would take most of the time.
 * Attributes are copied from an object that torch made; those with another value are set. */
#include "hosts/torch/exporter/events/py_view.h"

/* The attributes that are set, if the object that torch made has them. */
#define ATTRIBUTES(X)           \
    X(id)                       \
    X(name)                     \
    X(trace_name)               \
    X(time_range)               \
    X(thread)                   \
    X(fwd_thread)               \
    X(kernels)                  \
    X(cpu_children)             \
    X(cpu_parent)               \
    X(input_shapes)             \
    X(concrete_inputs)          \
    X(structured_input_shapes)  \
    X(structured_input_strides) \
    X(input_dtypes)             \
    X(kwinputs)                 \
    X(stack)                    \
    X(scope)                    \
    X(cpu_memory_usage)         \
    X(device_memory_usage)      \
    X(is_async)                 \
    X(sequence_nr)              \
    X(device_type)              \
    X(device_index)             \
    X(device_resource_id)       \
    X(flops)                    \
    X(is_user_annotation)       \
    X(is_python_function)       \
    X(activity_type)            \
    X(flow_id)                  \
    X(flow_type)                \
    X(flow_start)               \
    X(external_id)              \
    X(linked_correlation_id)    \
    X(python_id)                \
    X(python_parent_id)         \
    X(python_module_id)

enum {
#define ENTRY(name) AT_##name,
    ATTRIBUTES(ENTRY)
#undef ENTRY
        ATTRIBUTE_COUNT
};

static const char *const attribute_names[] = {
#define ENTRY(name) #name,
    ATTRIBUTES(ENTRY)
#undef ENTRY
};

typedef struct maker {
    kpti_py_table *table;
    kpti_view view;
    PyObject *kind; /* FunctionEvent, Interval and Kernel: torch's classes */
    PyObject *interval;
    PyObject *kernel;
    PyObject *model;        /* the attributes of an event that torch made */
    PyObject *memory_model; /* of a [memory] event */
    PyObject *names;        /* lists, by number: of keys and of traces */
    PyObject *trace_names;
    PyObject *keys[ATTRIBUTE_COUNT]; /* NULL if torch's objects have no such attribute */
    PyObject **threads;              /* numbers, by index */
    PyObject **resources;            /* the system's */
    PyObject **stacks;               /* lists, by number */
    PyObject **children;             /* borrowed lists, by row */
    PyObject *list;
} maker;

/* Sets an attribute, and takes over the reference to VALUE. Returns 0 with an exception. */
static int set(const maker *m, PyObject *dict, int attribute, PyObject *value)
{
    const int done =
        value && (!m->keys[attribute] || PyDict_SetItem(dict, m->keys[attribute], value) == 0);
    Py_XDECREF(value);
    return done;
}

static int set_number(const maker *m, PyObject *dict, int attribute, int64_t value, int64_t model)
{
    return value == model || set(m, dict, attribute, PyLong_FromLongLong(value));
}

static int set_field(const maker *m, PyObject *dict, int attribute, const kpti_event *event,
                     kpti_event_field field)
{
    return set(m, dict, attribute, kpti_py_field(m->table, event, field));
}

/* --- parts of an event ------------------------------------------------------------------------ */

static PyObject *interval_of(const maker *m, const kpti_event *event)
{
    PyObject *const start = PyFloat_FromDouble(kpti_view_us(&m->view, event->start_ns));
    PyObject *const end = start ? PyFloat_FromDouble(kpti_view_us(&m->view, event->end_ns)) : NULL;
    PyObject *const made = end ? PyObject_CallFunctionObjArgs(m->interval, start, end, NULL) : NULL;
    Py_XDECREF(start);
    Py_XDECREF(end);
    return made;
}

static PyObject *kernels_of(const maker *m, const kpti_row *row)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = row->first_kernel; list && i; i = m->view.kernels[i - 1].next) {
        const kpti_row *const work = &m->view.rows[m->view.kernels[i - 1].row];
        const kpti_event *const event = kpti_view_event(&m->view, work);
        PyObject *const one = PyObject_CallFunction(
            m->kernel, "ONd", PyList_GetItem(m->names, (Py_ssize_t)event->name),
            kpti_py_field(m->table, event, KPTI_FIELD_device_index), kpti_row_us(&m->view, work));
        if (!one || PyList_Append(list, one) < 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

static PyObject *stack_of(const maker *m, uint32_t stack)
{
    if (!m->stacks[stack]) m->stacks[stack] = kpti_py_view_stack(m->table, &m->view, stack, 0);
    return Py_XNewRef(m->stacks[stack]);
}

static PyObject *thread_of(const maker *m, PyObject **numbers, uint32_t thread)
{
    return thread < m->view.table->thread_count ? Py_NewRef(numbers[thread]) : PyLong_FromLong(0);
}

static int set_inputs(const maker *m, PyObject *dict, uint32_t inputs)
{
    static const struct {
        int attribute;
        kpti_input_list what;
    } lists[] = {{AT_input_shapes, KPTI_INPUT_SHAPES},
                 {AT_concrete_inputs, KPTI_INPUT_VALUES},
                 {AT_structured_input_shapes, KPTI_INPUT_SIZES},
                 {AT_structured_input_strides, KPTI_INPUT_STRIDES},
                 {AT_input_dtypes, KPTI_INPUT_TYPES}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (!set(m, dict, lists[i].attribute,
                 Py_XNewRef(kpti_py_table_inputs(m->table, inputs, lists[i].what))))
            return 0;
    return 1;
}

static int set_flow(const maker *m, PyObject *dict, const kpti_event *event)
{
    return !event->flow || (set_field(m, dict, AT_flow_id, event, KPTI_FIELD_flow_id) &&
                            set_field(m, dict, AT_flow_type, event, KPTI_FIELD_flow_type) &&
                            set_field(m, dict, AT_flow_start, event, KPTI_FIELD_flow_start));
}

/* What Python calls, annotations and GPUs have that differs from an operator. */
static int set_kind(const maker *m, PyObject *dict, const kpti_event *event)
{
    if (event->kind == KPTI_EVENT_OPERATOR)
        return set_number(m, dict, AT_external_id, event->id, 0) &&
               set_number(m, dict, AT_fwd_thread, (int64_t)event->forward_thread, 0) &&
               set_number(m, dict, AT_scope, event->scope, 0) && set_flow(m, dict, event) &&
               (!(m->table->shows & KPTI_TABLE_FLOPS) ||
                set_field(m, dict, AT_flops, event, KPTI_FIELD_flops));
    if (!set_field(m, dict, AT_activity_type, event, KPTI_FIELD_activity_type)) return 0;
    if (event->kind == KPTI_EVENT_PYTHON)
        return set(m, dict, AT_is_python_function, PyBool_FromLong(1)) &&
               set_number(m, dict, AT_python_id, event->id, -1) &&
               set_field(m, dict, AT_python_parent_id, event, KPTI_FIELD_python_parent_id) &&
               set_field(m, dict, AT_python_module_id, event, KPTI_FIELD_python_module_id);
    return set_number(m, dict, AT_scope, event->scope, 0) && set_flow(m, dict, event) &&
           set_field(m, dict, AT_external_id, event, KPTI_FIELD_external_id) &&
           set_field(m, dict, AT_linked_correlation_id, event, KPTI_FIELD_linked_correlation_id) &&
           set_field(m, dict, AT_is_user_annotation, event, KPTI_FIELD_is_user_annotation) &&
           set_field(m, dict, AT_device_type, event, KPTI_FIELD_device_type) &&
           set_field(m, dict, AT_device_index, event, KPTI_FIELD_device_index);
}

/* --- events ----------------------------------------------------------------------------------- */

static int set_common(maker *m, PyObject *dict, uint32_t index)
{
    const kpti_row *const row = &m->view.rows[index];
    const kpti_event *const event = kpti_view_event(&m->view, row);
    PyObject *const children = PyList_New(0);
    m->children[index] = children; /* the dictionary keeps it, if torch's objects have it */
    return set(m, dict, AT_cpu_children, children) &&
           set(m, dict, AT_id, PyLong_FromUnsignedLongLong(row->id)) &&
           set(m, dict, AT_name, Py_XNewRef(PyList_GetItem(m->names, (Py_ssize_t)event->name))) &&
           set(m, dict, AT_time_range, interval_of(m, event)) &&
           set(m, dict, AT_thread, thread_of(m, m->threads, row->thread)) &&
           set(m, dict, AT_kernels, kernels_of(m, row)) &&
           set_number(m, dict, AT_cpu_memory_usage, row->cpu_bytes, 0) &&
           set_number(m, dict, AT_device_memory_usage, row->device_bytes, 0);
}

static int set_memory_event(maker *m, PyObject *dict, const kpti_row *row)
{
    return set(m, dict, AT_fwd_thread, thread_of(m, m->threads, row->thread)) &&
           set(m, dict, AT_device_resource_id, thread_of(m, m->threads, row->thread)) &&
           set(m, dict, AT_input_shapes, PyList_New(0)) && set(m, dict, AT_stack, PyList_New(0));
}

static int set_event(maker *m, PyObject *dict, const kpti_row *row)
{
    const kpti_event *const event = kpti_view_event(&m->view, row);
    if (event->kind == KPTI_EVENT_MEMORY) return set_memory_event(m, dict, row);
    return set(m, dict, AT_trace_name,
               Py_XNewRef(PyList_GetItem(m->trace_names, (Py_ssize_t)event->name))) &&
           set_field(m, dict, AT_kwinputs, event, KPTI_FIELD_kwinputs) &&
           (kpti_event_is_on_device(event)
                ? set_field(m, dict, AT_device_resource_id, event, KPTI_FIELD_device_resource_id)
                : set(m, dict, AT_device_resource_id, thread_of(m, m->resources, event->thread))) &&
           set_number(m, dict, AT_sequence_nr, (int64_t)event->sequence_plus_1 - 1, -1) &&
           (!(event->flags & KPTI_EVENT_ASYNC) || set(m, dict, AT_is_async, PyBool_FromLong(1))) &&
           set_inputs(m, dict, event->inputs) && set(m, dict, AT_stack, stack_of(m, row->stack)) &&
           set_kind(m, dict, event);
}

/* Adds the event of row INDEX to the list, to its parent and to its parent's children, which were made before. */
static int add(maker *m, uint32_t index)
{
    const kpti_row *const row = &m->view.rows[index];
    const int is_memory = kpti_view_event(&m->view, row)->kind == KPTI_EVENT_MEMORY;
    PyObject *const dict = PyDict_Copy(is_memory ? m->memory_model : m->model);
    PyObject *const parent =
        row->parent ? PyList_GetItem(m->list, (Py_ssize_t)row->parent - 1) : NULL;
    PyObject *made;
    int done;
    if (!dict) return 0;
    if (!set_common(m, dict, index) || !set_event(m, dict, row) ||
        (parent && !set(m, dict, AT_cpu_parent, Py_NewRef(parent)))) {
        Py_DECREF(dict);
        return 0;
    }
    made = kpti_py_object(m->kind, dict);
    done = made && (!parent || PyList_Append(m->children[row->parent - 1], made) == 0);
    if (!done) {
        Py_XDECREF(made);
        return 0;
    }
    return PyList_SetItem(m->list, (Py_ssize_t)index, made) == 0;
}

static int add_all(maker *m)
{
    m->list = PyList_New((Py_ssize_t)m->view.count);
    for (uint32_t i = 0; m->list && i < m->view.count; i++)
        if (!add(m, i)) Py_CLEAR(m->list);
    return m->list != NULL;
}

/* --- the maker -------------------------------------------------------------------------------- */

static int prepare(maker *m)
{
    const kpti_event_table *const t = m->view.table;
    m->threads = calloc((size_t)t->thread_count + 1, sizeof *m->threads);
    m->resources = calloc((size_t)t->thread_count + 1, sizeof *m->resources);
    m->stacks = calloc((size_t)t->stack_count + 1, sizeof *m->stacks);
    m->children = calloc((size_t)m->view.count + 1, sizeof *m->children);
    if (!m->threads || !m->resources || !m->stacks || !m->children) return PyErr_NoMemory() != NULL;
    for (int i = 0; i < ATTRIBUTE_COUNT; i++) {
        PyObject *const key = PyUnicode_InternFromString(attribute_names[i]);
        const int has = key ? PyDict_Contains(m->model, key) : -1;
        if (has > 0)
            m->keys[i] = key;
        else
            Py_XDECREF(key);
        if (has < 0) return 0;
    }
    if (!m->keys[AT_cpu_children] || !m->keys[AT_cpu_parent]) {
        PyErr_SetString(PyExc_TypeError, "FunctionEvent has no cpu_children");
        return 0;
    }
    for (uint32_t i = 0; i < t->thread_count; i++) {
        m->threads[i] = PyLong_FromUnsignedLongLong(t->threads[i].number);
        m->resources[i] = PyLong_FromUnsignedLongLong(t->threads[i].os_tid);
        if (!m->threads[i] || !m->resources[i]) return 0;
    }
    return 1;
}

static void free_maker(maker *m)
{
    const kpti_event_table *const t = m->view.table;
    for (int i = 0; i < ATTRIBUTE_COUNT; i++)
        Py_XDECREF(m->keys[i]);
    for (uint32_t i = 0; m->threads && i < t->thread_count; i++)
        Py_XDECREF(m->threads[i]);
    for (uint32_t i = 0; m->resources && i < t->thread_count; i++)
        Py_XDECREF(m->resources[i]);
    for (uint32_t i = 0; m->stacks && i <= t->stack_count; i++)
        Py_XDECREF(m->stacks[i]);
    free(m->threads);
    free(m->resources);
    free(m->stacks);
    free(m->children);
    kpti_view_free(&m->view);
}

PyObject *kpti_py_function_events(PyObject *self, PyObject *args)
{
    maker m = {.table = (kpti_py_table *)self};
    PyObject *options;
    int collects;
    if (!PyArg_ParseTuple(args, "O!O!OOO!O!O!O!", &PyTuple_Type, &options, &PyType_Type, &m.kind,
                          &m.interval, &m.kernel, &PyDict_Type, &m.model, &PyDict_Type,
                          &m.memory_model, &PyList_Type, &m.names, &PyList_Type, &m.trace_names))
        return NULL;
    /* The collector would run often, over more and more objects, none of which is garbage. */
    collects = PyGC_Disable();
    if (kpti_py_view_make(m.table, options, &m.view, NULL) && prepare(&m)) (void)add_all(&m);
    if (collects) (void)PyGC_Enable();
    free_maker(&m);
    return m.list;
}
