#include "hosts/standalone/module/py_profile.h"

#include "hosts/standalone/module/support/py_support.h"
#include "hosts/standalone/session/session_export.h"

/* Returns a tuple with the function, the thread and the counts of a row. */
static PyObject *row_to_tuple(const kpti_profile *profile, const kpti_profile_row *row)
{
    const kpt_name *name = kpti_profile_name(profile, row->name);
    const kpt_thread *thread = kpti_profile_thread(profile, row->thread);
    return Py_BuildValue(
        "y#y#y#ky#KKKKK", name ? name->display.data : "", name ? (Py_ssize_t)name->display.size : 0,
        name ? name->function.data : "", name ? (Py_ssize_t)name->function.size : 0,
        name ? name->file.data : "", name ? (Py_ssize_t)name->file.size : 0,
        (unsigned long)(name ? name->first_line : 0), thread ? thread->name.data : "",
        thread ? (Py_ssize_t)thread->name.size : 0, (unsigned long long)row->calls,
        (unsigned long long)row->own_ns, (unsigned long long)row->total_ns,
        (unsigned long long)row->min_ns, (unsigned long long)row->max_ns);
}

/* The same, with the step and whether it is an operator at the end. */
static PyObject *row_with_step(const kpti_profile *profile, const kpti_profile_row *row)
{
    PyObject *base = row_to_tuple(profile, row);
    PyObject *step =
        base ? Py_BuildValue("ki", (unsigned long)row->step, row->kind == KPT_KIND_OPERATOR) : NULL;
    PyObject *both = step ? PySequence_Concat(base, step) : NULL;
    Py_XDECREF(base);
    Py_XDECREF(step);
    return both;
}

typedef struct shown {
    const kpti_profile *profile;
    const kpti_profile_row *rows;
    int has_steps;
} shown;

static PyObject *make_row(const void *table, uint32_t index)
{
    const shown *t = table;
    return t->has_steps ? row_with_step(t->profile, &t->rows[index])
                        : row_to_tuple(t->profile, &t->rows[index]);
}

const char kpti_profile_doc[] =
    "profile(trace, sort, most, by_thread, progress[, steps[, take]]) -> rows by function; with "
    "STEPS, "
    "sorted pairs of int64 times, by function and step: the last items of a row are the "
    "step's number, from 1, or 0 outside of steps, and whether it is an operator. TAKE is called "
    "with lists of rows, which are not returned then";

PyObject *kpti_profile_call(PyObject *module, PyObject *args)
{
    static const kpti_heap heap = {NULL, NULL, NULL};
    kpti_long_call call = {NULL, NULL, 0};
    kpti_session_watch watch;
    PyObject *capsule;
    PyObject *progress;
    PyObject *take = Py_None;
    PyObject *list = NULL;
    kpti_session *session;
    kpti_profile *made;
    kpti_session_error error;
    kpt_status status;
    unsigned max;
    const char *steps = NULL;
    Py_ssize_t steps_size = 0;
    int sort;
    int by_thread;
    (void)module;
    if (!PyArg_ParseTuple(args, "OiIpO|z#O", &capsule, &sort, &max, &by_thread, &progress, &steps,
                          &steps_size, &take))
        return NULL;
    session = kpti_session_of(capsule);
    if (!session) return NULL;
    if (sort < KPTI_PROFILE_BY_OWN || sort > KPTI_PROFILE_BY_MAX) {
        PyErr_Format(PyExc_ValueError, "unknown sort order %d", sort);
        return NULL;
    }
    if (progress != Py_None) call.progress = progress;
    if (kpti_profile_open(&heap, by_thread ? KPTI_PROFILE_BY_THREAD : 0, &made) != KPT_OK)
        return PyErr_NoMemory();
    if (steps)
        kpti_profile_by_step(made, (const void *)steps,
                             (uint32_t)((size_t)steps_size / sizeof(kpti_profile_step)));
    watch = kpti_watch_of(&call);
    call.released = PyEval_SaveThread();
    status = kpti_session_profile(session, &watch, made, &error);
    PyEval_RestoreThread(call.released);
    if (status == KPT_OK && !call.raised) {
        uint32_t count;
        const shown table = {made, kpti_profile_rows(made, (kpti_profile_sort)sort, &count),
                             steps != NULL};
        list = kpti_rows_to_lists(&table, count < max ? count : max, make_row, take);
    } else {
        (void)kpti_raise(&error, NULL);
    }
    kpti_profile_free(made);
    return list;
}
