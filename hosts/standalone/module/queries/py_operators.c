#include "hosts/standalone/module/queries/py_operators.h"

#include "hosts/standalone/module/support/py_support.h"
#include "hosts/standalone/session/session_queries.h"

static PyObject *row_to_tuple(const kpti_operator_table *table, const kpti_operator_row *row)
{
    const kpt_str name = kpti_operator_table_name(table, row->name);
    const int has_function =
        row->caller == KPTI_CALLED_BY_FUNCTION || row->caller == KPTI_CALLED_BY_AUTOGRAD;
    const kpt_str function =
        has_function ? kpti_operator_table_name(table, row->function) : (kpt_str){"", 0};
    return Py_BuildValue("y#iiy#KKKKKK", name.data, (Py_ssize_t)name.size,
                         row->kind == KPT_KIND_RANGE_BEGIN, (int)row->caller, function.data,
                         (Py_ssize_t)function.size, (unsigned long long)row->calls,
                         (unsigned long long)row->own_ns, (unsigned long long)row->total_ns,
                         (unsigned long long)row->max_ns, (unsigned long long)row->gpu_own_ns,
                         (unsigned long long)row->gpu_total_ns);
}

/* The same, with the shortest time, the thread and the step at the end. */
static PyObject *row_with_step(const kpti_operator_table *table, const kpti_operator_row *row)
{
    const kpt_str thread = kpti_operator_table_thread(table, row->thread);
    PyObject *base = row_to_tuple(table, row);
    PyObject *more = base ? Py_BuildValue("Ky#k", (unsigned long long)row->min_ns, thread.data,
                                          (Py_ssize_t)thread.size, (unsigned long)row->step)
                          : NULL;
    PyObject *both = more ? PySequence_Concat(base, more) : NULL;
    Py_XDECREF(base);
    Py_XDECREF(more);
    return both;
}

typedef struct shown {
    const kpti_operator_table *operators;
    const kpti_operator_row *rows;
    int has_steps;
} shown;

static PyObject *make_row(const void *table, uint32_t index)
{
    const shown *t = table;
    return t->has_steps ? row_with_step(t->operators, &t->rows[index])
                        : row_to_tuple(t->operators, &t->rows[index]);
}

const char kpti_operators_doc[] =
    "operators(trace, by_function, progress[, steps[, take]]) -> rows (name, whether it is a "
    "range, "
    "caller, "
    "Python function, calls, own ns, total ns, longest ns, own and total GPU ns). The caller is 0: "
    "none, 1: the function, 2: autograd, for an operator that the function called, 3: autograd, "
    "for an operator that is not known. With STEPS, as for profile, rows are also by thread and "
    "step, and end with the shortest ns, the thread and the step's number. TAKE as for profile";

PyObject *kpti_operators_call(PyObject *module, PyObject *args)
{
    static const kpti_heap heap = {NULL, NULL, NULL};
    kpti_long_call call = {NULL, NULL, 0};
    kpti_session_watch watch;
    PyObject *capsule;
    PyObject *progress;
    PyObject *take = Py_None;
    PyObject *list = NULL;
    kpti_session *session;
    kpti_operator_table *table;
    kpti_session_error error;
    kpt_status status;
    uint32_t flags;
    const char *steps = NULL;
    Py_ssize_t steps_size = 0;
    int by_function;
    (void)module;
    if (!PyArg_ParseTuple(args, "OpO|z#O", &capsule, &by_function, &progress, &steps, &steps_size,
                          &take))
        return NULL;
    session = kpti_session_of(capsule);
    if (!session) return NULL;
    if (progress != Py_None) call.progress = progress;
    flags = by_function ? KPTI_OPERATORS_BY_FUNCTION : 0;
    if (steps) flags |= KPTI_OPERATORS_BY_THREAD;
    if (kpti_operator_table_open(&heap, flags, &table) != KPT_OK) return PyErr_NoMemory();
    if (steps)
        kpti_operator_table_by_step(table, (const void *)steps,
                                    (uint32_t)((size_t)steps_size / sizeof(kpti_profile_step)));
    watch = kpti_watch_of(&call);
    call.released = PyEval_SaveThread();
    status = kpti_session_operators(session, &watch, table, &error);
    PyEval_RestoreThread(call.released);
    if (status == KPT_OK && !call.raised) {
        uint32_t count;
        const shown all = {table, kpti_operator_table_rows(table, &count), steps != NULL};
        list = kpti_rows_to_lists(&all, count, make_row, take);
    } else {
        (void)kpti_raise(&error, NULL);
    }
    kpti_operator_table_free(table);
    return list;
}
