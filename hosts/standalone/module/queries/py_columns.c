#include "hosts/standalone/module/queries/py_columns.h"

#include "core/base/batch_records.h"
#include "hosts/standalone/module/support/py_support.h"
#include "hosts/standalone/session/session_queries.h"

/* The columns of a batch's calls. Python receives them as bytes, in this order. */
typedef struct columns {
    uint64_t *id;
    uint64_t *parent_id;
    int64_t *start_ns;
    int64_t *ns;
    uint32_t *name;
    uint32_t *thread;
    uint32_t *depth;
    uint32_t *step;
    uint32_t *kind; /* FUNCTION, OPERATOR or RANGE */
} columns;
enum { COLUMNS = 9 };
static const size_t widths[COLUMNS] = {8, 8, 8, 8, 4, 4, 4, 4, 4};
enum { FUNCTION = 0, OPERATOR = 1, RANGE = 2 };

typedef struct delivery {
    kpti_long_call call;
    PyObject *take;
    const kpti_profile_step *steps;
    uint32_t step_count;
    int is_of_ranges;   /* rows are ranges, not calls */
    kpt_activity *open; /* ranges that have begun */
    uint32_t open_capacity;
    uint32_t open_count;
} delivery;

static const kpti_heap heap = {NULL, NULL, NULL};

static PyObject *text(kpt_str from)
{
    return PyUnicode_DecodeUTF8(from.size ? from.data : "", (Py_ssize_t)from.size, "replace");
}

/* Appends VALUE to LIST and releases it. Returns 0 with an exception. */
static int append(PyObject *list, PyObject *value)
{
    int done = value && PyList_Append(list, value) == 0;
    Py_XDECREF(value);
    return done;
}

static PyObject *names_of(const kpt_batch *batch)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < batch->name_count; i++) {
        const kpt_name *n = kpti_record(batch->names, batch->name_stride, i);
        const kpt_str shown = n->function.size ? kpti_function_name(n) : n->display;
        if (!append(list, Py_BuildValue("kNNk", (unsigned long)n->index, text(shown), text(n->file),
                                        (unsigned long)n->first_line)))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *threads_of(const kpt_batch *batch)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < batch->thread_count; i++) {
        const kpt_thread *t = kpti_record(batch->threads, batch->thread_stride, i);
        if (!append(list, Py_BuildValue("kN", (unsigned long)t->index, text(t->name))))
            Py_CLEAR(list);
    }
    return list;
}

static void fill_row(const delivery *d, const columns *c, Py_ssize_t row, const kpt_activity *a,
                     uint32_t kind)
{
    c->id[row] = a->id;
    c->parent_id[row] = a->parent_id;
    c->start_ns[row] = a->start_ns;
    c->ns[row] = a->end_ns - a->start_ns;
    c->name[row] = a->name;
    c->thread[row] = a->thread;
    c->depth[row] = a->depth;
    c->step[row] = kpti_profile_step_at(d->steps, d->step_count, a->start_ns);
    c->kind[row] = kind;
}

static Py_ssize_t fill_calls(const delivery *d, const kpt_batch *batch, const columns *c)
{
    Py_ssize_t row = 0;
    for (uint32_t i = 0; i < batch->activity_count; i++) {
        const kpt_activity *a = kpti_record(batch->activities, batch->activity_stride, i);
        if (a->kind != KPT_KIND_POINT)
            fill_row(d, c, row++, a, a->kind == KPT_KIND_OPERATOR ? OPERATOR : FUNCTION);
    }
    return row;
}

/* Removes the range that END ends from those that are open. Returns 0 if it is not open. */
static int end_range(delivery *d, const kpt_activity *end, kpt_activity *range)
{
    for (uint32_t i = d->open_count; i-- > 0;) {
        *range = d->open[i];
        if (range->thread != end->thread || range->value0 != end->value0) continue;
        range->end_ns = end->start_ns;
        memmove(&d->open[i], &d->open[i + 1], (--d->open_count - i) * sizeof *d->open);
        return 1;
    }
    return 0;
}

/* Ranges are rows when they end. Returns -1 with an exception. */
static Py_ssize_t fill_ranges(delivery *d, const kpt_batch *batch, const columns *c)
{
    Py_ssize_t row = 0;
    for (uint32_t i = 0; i < batch->activity_count; i++) {
        const kpt_activity *a = kpti_record(batch->activities, batch->activity_stride, i);
        kpt_activity range;
        if (a->kind == KPT_KIND_RANGE_END && end_range(d, a, &range))
            fill_row(d, c, row++, &range, RANGE);
        if (a->kind != KPT_KIND_RANGE_BEGIN) continue;
        if (kpti_array_reach(&heap, &d->open, &d->open_capacity, d->open_count, sizeof *d->open) !=
            KPT_OK) {
            PyErr_NoMemory();
            return -1;
        }
        d->open[d->open_count++] = *a;
    }
    return row;
}

/* Returns the columns as bytes, each with one value per call, or NULL with an exception. */
static PyObject *columns_of(delivery *d, const kpt_batch *batch)
{
    void *memory[COLUMNS] = {NULL};
    columns made;
    Py_ssize_t rows = 0;
    PyObject *list = PyList_New(0);
    int fine = list != NULL;
    for (int i = 0; i < COLUMNS; i++) {
        memory[i] = PyMem_Calloc((size_t)batch->activity_count + 1, widths[i]);
        fine = fine && memory[i];
    }
    if (fine) {
        made = (columns){memory[0], memory[1], memory[2], memory[3], memory[4],
                         memory[5], memory[6], memory[7], memory[8]};
        rows = d->is_of_ranges ? fill_ranges(d, batch, &made) : fill_calls(d, batch, &made);
        fine = rows >= 0;
    }
    for (int i = 0; i < COLUMNS; i++) {
        fine = fine &&
               append(list, PyBytes_FromStringAndSize(memory[i], rows * (Py_ssize_t)widths[i]));
        PyMem_Free(memory[i]);
    }
    if (fine) return list;
    Py_XDECREF(list);
    return PyErr_Occurred() ? NULL : PyErr_NoMemory();
}

static PyObject *hand_over(delivery *d, const kpt_batch *batch)
{
    PyObject *names = names_of(batch);
    PyObject *threads = names ? threads_of(batch) : NULL;
    PyObject *made = threads ? columns_of(d, batch) : NULL;
    PyObject *answer =
        made ? PyObject_CallFunctionObjArgs(d->take, names, threads, made, NULL) : NULL;
    Py_XDECREF(names);
    Py_XDECREF(threads);
    Py_XDECREF(made);
    return answer;
}

/* Implements kpt_batch_fn. */
static kpt_status take_batch(void *ctx, const kpt_batch *batch)
{
    delivery *d = ctx;
    PyObject *answer;
    if (!kpti_records_can_read(batch)) return KPT_E_SIZE;
    PyEval_RestoreThread(d->call.released);
    answer = hand_over(d, batch);
    d->call.raised = !answer;
    Py_XDECREF(answer);
    d->call.released = PyEval_SaveThread();
    return d->call.raised ? KPT_E_STATE : KPT_OK;
}

const char kpti_columns_doc[] =
    "columns(trace, steps, take, ranges): calls TAKE with each batch of calls, or of RANGES "
    "instead: "
    "the new names as (number, function, file, line), the new threads as (number, name), and the "
    "columns of the calls as bytes: id, parent id, start, duration, name, thread, depth, step, "
    "kind "
    "(0: function, 1: operator, 2: range)";

PyObject *kpti_columns_call(PyObject *module, PyObject *args)
{
    delivery d = {.call = {NULL, NULL, 0}};
    kpti_session_error error;
    kpti_session *session;
    PyObject *capsule;
    const char *steps;
    Py_ssize_t size;
    kpt_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oy#Op", &capsule, &steps, &size, &d.take, &d.is_of_ranges))
        return NULL;
    session = kpti_session_of(capsule);
    if (!session) return NULL;
    d.steps = (const void *)steps;
    d.step_count = (uint32_t)((size_t)size / sizeof(kpti_profile_step));
    d.call.released = PyEval_SaveThread();
    status = d.is_of_ranges ? kpti_session_deliver_ranges(session, NULL, take_batch, &d, &error)
                            : kpti_session_deliver(session, NULL, take_batch, &d, &error);
    PyEval_RestoreThread(d.call.released);
    kpti_heap_give(&heap, d.open, d.open_capacity * sizeof *d.open);
    if (status == KPT_OK) return Py_NewRef(Py_None);
    return kpti_raise(&error, NULL);
}
