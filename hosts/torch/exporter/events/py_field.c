/* The values of an event's fields, as stock torch has them. */
#include "hosts/torch/exporter/events/event_flops.h"
#include "hosts/torch/exporter/events/py_table.h"

/* torch's kinds of flows. */
enum { FLOW_FORWARD_BACKWARD = 1, FLOW_CPU_GPU = 2 };

static PyObject *number(uint64_t value)
{
    return PyLong_FromUnsignedLongLong(value);
}

static PyObject *signed_number(int64_t value)
{
    return PyLong_FromLongLong(value);
}

static const kpti_event_gpu *gpu_of(const kpti_event_table *t, const kpti_event *event)
{
    return event->kind >= KPTI_EVENT_GPU_CALL ? &t->gpu[event->more] : NULL;
}

static const kpti_torch_memory *memory_of(const kpti_event_table *t, const kpti_event *event)
{
    return event->kind == KPTI_EVENT_MEMORY ? &t->memory[event->more] : NULL;
}

static int is_numbered(const kpti_event *event)
{
    return event->kind == KPTI_EVENT_OPERATOR || event->kind == KPTI_EVENT_ANNOTATION;
}

static const char *activity_of(const kpti_event_table *t, const kpti_event *event)
{
    static const char *const of_kind[] = {"cpu_op",
                                          "user_annotation",
                                          "python_function",
                                          "python_function",
                                          "cpu_instant_event",
                                          "",
                                          "",
                                          "gpu_user_annotation"};
    static const char *const of_gpu[] = {"kernel",    "kernel",       "gpu_memcpy",  "gpu_memset",
                                         "cuda_sync", "cuda_runtime", "cuda_driver", "overhead"};
    const kpti_event_gpu *const gpu = gpu_of(t, event);
    if (!gpu || !gpu->kind) return of_kind[event->kind];
    return gpu->kind < sizeof of_gpu / sizeof *of_gpu ? of_gpu[gpu->kind] : "";
}

static const kpti_event_thread *thread_of(const kpti_event_table *t, const kpti_event *event)
{
    static const kpti_event_thread none = {0, 0, 0, 0};
    return event->thread < t->thread_count ? &t->threads[event->thread] : &none;
}

/* --- devices ---------------------------------------------------------------------------------- */

static PyObject *device_type(kpti_py_table *p, const kpti_event *event)
{
    const kpti_torch_memory *const memory = memory_of(&p->table, event);
    if (memory && memory->device_type)
        return PyObject_CallFunction(p->device_type, "i", (int)memory->device_type);
    return Py_NewRef(kpti_event_is_on_device(event) ? p->cuda : p->cpu);
}

static PyObject *device_index(const kpti_py_table *p, const kpti_event *event)
{
    const kpti_torch_memory *const memory = memory_of(&p->table, event);
    if (memory) return signed_number(memory->device_index);
    if (!kpti_event_is_on_device(event)) return signed_number(p->pid);
    return signed_number((int32_t)gpu_of(&p->table, event)->device);
}

static PyObject *resource(const kpti_py_table *p, const kpti_event *event)
{
    if (kpti_event_is_on_device(event))
        return signed_number((int32_t)gpu_of(&p->table, event)->stream);
    return number(thread_of(&p->table, event)->os_tid);
}

/* --- numbers ---------------------------------------------------------------------------------- */

static uint64_t correlation(const kpti_event_table *t, const kpti_event *event)
{
    const kpti_event_gpu *const gpu = gpu_of(t, event);
    if (gpu) return gpu->correlation;
    return is_numbered(event) ? event->id : 0;
}

static uint64_t linked(const kpti_event_table *t, const kpti_event *event)
{
    const kpti_event_gpu *const gpu = gpu_of(t, event);
    return gpu ? gpu->linked : 0;
}

static int64_t python_number(const kpti_event *event, uint32_t value)
{
    return event->kind == KPTI_EVENT_PYTHON && value ? (int64_t)value : -1;
}

static uint64_t flow_type(const kpti_event *event)
{
    if (!event->flow) return 0;
    return event->kind >= KPTI_EVENT_GPU_CALL ? FLOW_CPU_GPU : FLOW_FORWARD_BACKWARD;
}

static uint64_t flops(const kpti_py_table *p, const kpti_event *event)
{
    const kpti_event_table *const t = &p->table;
    if (!(p->shows & KPTI_TABLE_FLOPS) || !event->inputs) return 0;
    return kpti_event_flops(t->names.texts[event->name], t->inputs[event->inputs]);
}

/* --- lists ------------------------------------------------------------------------------------ */

PyObject *kpti_py_table_inputs(kpti_py_table *p, uint32_t inputs, kpti_input_list what)
{
    PyObject **place;
    if (!inputs || !(p->shows & KPTI_TABLE_INPUTS)) return p->none;
    if (!p->lists) {
        p->lists = calloc(((size_t)p->table.input_count + 1) * KPTI_INPUT_LISTS, sizeof *p->lists);
        if (!p->lists) return PyErr_NoMemory();
    }
    place = &p->lists[(size_t)inputs * KPTI_INPUT_LISTS + what];
    if (!*place) *place = kpti_py_inputs(p->table.inputs[inputs], what);
    return *place;
}

static PyObject *inputs(kpti_py_table *p, const kpti_event *event, kpti_input_list what)
{
    return Py_XNewRef(kpti_py_table_inputs(p, event->inputs, what));
}

/* A dictionary of the event's own. */
static PyObject *keywords(kpti_py_table *p, const kpti_event *event)
{
    PyObject *const all = kpti_py_table_inputs(p, event->inputs, KPTI_INPUT_KEYWORDS);
    if (!all) return NULL;
    return all == p->none ? PyDict_New() : PyDict_Copy(all);
}

static PyObject *stack(const kpti_py_table *p, const kpti_event *event)
{
    PyObject *list = PyList_New(0);
    const kpti_event_stack *const stacks = p->table.stacks;
    for (uint32_t at = event->stack; list && at; at = stacks[at].caller)
        if (PyList_Append(list, PyList_GetItem(p->names, (Py_ssize_t)stacks[at].name)) < 0)
            Py_CLEAR(list);
    return list;
}

/* --- all of them ------------------------------------------------------------------------------ */

PyObject *kpti_py_field(kpti_py_table *p, const kpti_event *event, kpti_event_field field)
{
    const kpti_event_table *const t = &p->table;
    const kpti_torch_memory *memory;
    switch (field) {
    case KPTI_FIELD_name:
        return Py_NewRef(PyList_GetItem(p->names, (Py_ssize_t)event->name));
    case KPTI_FIELD_overload_name:
    case KPTI_FIELD_metadata_json:
        return PyUnicode_FromString("");
    case KPTI_FIELD_activity_type:
        return PyUnicode_FromString(activity_of(t, event));
    case KPTI_FIELD_device_type:
        return device_type(p, event);
    case KPTI_FIELD_device_index:
        return device_index(p, event);
    case KPTI_FIELD_device_resource_id:
        return resource(p, event);
    case KPTI_FIELD_start_ns:
        return signed_number(event->start_ns);
    case KPTI_FIELD_end_ns:
        return signed_number(event->end_ns);
    case KPTI_FIELD_duration_ns:
        return signed_number(event->end_ns - event->start_ns);
    case KPTI_FIELD_start_thread_id:
    case KPTI_FIELD_end_thread_id:
        return number(thread_of(t, event)->number);
    case KPTI_FIELD_fwd_thread_id:
        return number(event->forward_thread);
    case KPTI_FIELD_correlation_id:
        return number(correlation(t, event));
    case KPTI_FIELD_external_id:
        return number(is_numbered(event) ? event->id : linked(t, event));
    case KPTI_FIELD_linked_correlation_id:
        return number(linked(t, event));
    case KPTI_FIELD_sequence_nr:
        return signed_number((int64_t)event->sequence_plus_1 - 1);
    case KPTI_FIELD_scope:
        return number(event->scope);
    case KPTI_FIELD_is_async:
        return PyBool_FromLong(event->flags & KPTI_EVENT_ASYNC);
    case KPTI_FIELD_is_hidden_event:
        return PyBool_FromLong(0);
    case KPTI_FIELD_is_python_function:
        return PyBool_FromLong(event->kind == KPTI_EVENT_PYTHON);
    case KPTI_FIELD_is_user_annotation:
        return PyBool_FromLong(event->kind == KPTI_EVENT_ANNOTATION ||
                               event->kind == KPTI_EVENT_GPU_ANNOTATION);
    case KPTI_FIELD_shapes:
        return inputs(p, event, KPTI_INPUT_SHAPES);
    case KPTI_FIELD_dtypes:
        return inputs(p, event, KPTI_INPUT_TYPES);
    case KPTI_FIELD_concrete_inputs:
        return inputs(p, event, KPTI_INPUT_VALUES);
    case KPTI_FIELD_structured_input_shapes:
        return inputs(p, event, KPTI_INPUT_SIZES);
    case KPTI_FIELD_structured_input_strides:
        return inputs(p, event, KPTI_INPUT_STRIDES);
    case KPTI_FIELD_kwinputs:
        return keywords(p, event);
    case KPTI_FIELD_typed_metadata:
    case KPTI_FIELD_extra_meta:
        return PyDict_New();
    case KPTI_FIELD_stack:
        return stack(p, event);
    case KPTI_FIELD_flops:
        return number(flops(p, event));
    case KPTI_FIELD_nbytes:
        memory = memory_of(t, event);
        return signed_number(memory ? memory->size : 0);
    case KPTI_FIELD_flow_id:
        return number(event->flow);
    case KPTI_FIELD_flow_type:
        return number(flow_type(event));
    case KPTI_FIELD_flow_start:
        return PyBool_FromLong(event->flags & KPTI_EVENT_FLOW_START);
    case KPTI_FIELD_python_id:
        return signed_number(python_number(event, event->id));
    case KPTI_FIELD_python_parent_id:
        return signed_number(python_number(event, event->parent));
    case KPTI_FIELD_python_module_id:
        return signed_number(event->kind == KPTI_EVENT_PYTHON ? (int64_t)event->more - 1 : -1);
    case KPTI_FIELD_cuda_elapsed_us:
    case KPTI_FIELD_privateuse1_elapsed_us:
        return signed_number(-1); /* only without Kineto's kind of recording */
    default:
        PyErr_BadInternalCall();
        return NULL;
    }
}
