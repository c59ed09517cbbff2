/* py_table.h: EventTable, a Python object around the events of a recording, and its events as torch lists them. */
#ifndef KPTI_TORCH_PY_TABLE_H
#define KPTI_TORCH_PY_TABLE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "hosts/torch/exporter/events/event_table.h"
#include "hosts/torch/exporter/events/py_inputs.h"

enum { /* what a profile asked for */
       KPTI_TABLE_STACKS = 1 << 0,
       KPTI_TABLE_INPUTS = 1 << 1,
       KPTI_TABLE_FLOPS = 1 << 2
};

typedef struct kpti_py_table {
    PyObject_HEAD kpti_event_table table;
    int shows; /* KPTI_TABLE_* */
    long pid;
    PyObject *device_type; /* torch's enum of devices */
    PyObject *event_type;  /* of its events */
    PyObject *names;       /* a list of texts, by number */
    PyObject **lists;      /* by inputs and kpti_input_list; NULL: not made yet */
    PyObject *none;        /* an empty list, for events without inputs */
    PyObject *cpu;         /* kinds of devices */
    PyObject *cuda;
} kpti_py_table;

/* The methods of torch's events. */
#define KPTI_EVENT_FIELDS(X)    \
    X(name)                     \
    X(overload_name)            \
    X(activity_type)            \
    X(device_type)              \
    X(device_index)             \
    X(device_resource_id)       \
    X(start_ns)                 \
    X(end_ns)                   \
    X(duration_ns)              \
    X(start_thread_id)          \
    X(end_thread_id)            \
    X(fwd_thread_id)            \
    X(correlation_id)           \
    X(external_id)              \
    X(linked_correlation_id)    \
    X(sequence_nr)              \
    X(scope)                    \
    X(is_async)                 \
    X(is_hidden_event)          \
    X(is_python_function)       \
    X(is_user_annotation)       \
    X(shapes)                   \
    X(dtypes)                   \
    X(concrete_inputs)          \
    X(structured_input_shapes)  \
    X(structured_input_strides) \
    X(kwinputs)                 \
    X(typed_metadata)           \
    X(stack)                    \
    X(flops)                    \
    X(nbytes)                   \
    X(flow_id)                  \
    X(flow_type)                \
    X(flow_start)               \
    X(python_id)                \
    X(python_parent_id)         \
    X(python_module_id)         \
    X(cuda_elapsed_us)          \
    X(privateuse1_elapsed_us)   \
    X(metadata_json)            \
    X(extra_meta)

typedef enum kpti_event_field {
#define KPTI_FIELD(name) KPTI_FIELD_##name,
    KPTI_EVENT_FIELDS(KPTI_FIELD)
#undef KPTI_FIELD
        KPTI_EVENT_FIELD_COUNT
} kpti_event_field;

/* Returns the value of a field of an event, or NULL with an exception. Lists of inputs belong to the table. */
PyObject *kpti_py_field(kpti_py_table *p, const kpti_event *event, kpti_event_field field);

/* Returns a borrowed list of the inputs WHAT of EVENT, or NULL with an exception. */
PyObject *kpti_py_table_inputs(kpti_py_table *p, uint32_t inputs, kpti_input_list what);

/* Adds the types to MODULE. Returns 0, or -1 with an exception. */
int kpti_py_table_add(PyObject *module);

/* The methods of EventTable that make torch's own objects. */
PyObject *kpti_py_function_events(PyObject *self, PyObject *args);
PyObject *kpti_py_averages(PyObject *self, PyObject *args);
PyObject *kpti_py_self_cpu(PyObject *self, PyObject *args);

#endif
