#include "hosts/standalone/module/queries/py_profile.h"

#include "core/base/batch_records.h"
#include "hosts/standalone/module/support/py_support.h"
#include "hosts/standalone/session/session_queries.h"
#include "writers/thread_sums.h"

/* Py_BuildValue makes None of NULL. */
static const char *bytes_of(kpt_str text)
{
    return text.data ? text.data : "";
}

/* Returns a tuple with the function, by its qualified name where that is known, the thread, the counts and the number of
 * the function. */
static PyObject *row_to_tuple(const kpti_profile *profile, const kpti_profile_row *row)
{
    static const kpt_name no_name;
    static const kpt_thread no_thread;
    const kpt_name *known = kpti_profile_name(profile, row->name);
    const kpt_thread *known_thread = kpti_profile_thread(profile, row->thread);
    const kpt_name *name = known ? known : &no_name;
    const kpt_str function = kpti_function_name(name);
    const kpt_str thread = (known_thread ? known_thread : &no_thread)->name;
    return Py_BuildValue("y#y#y#ky#KKKKKk", bytes_of(name->display), (Py_ssize_t)name->display.size,
                         bytes_of(function), (Py_ssize_t)function.size, bytes_of(name->file),
                         (Py_ssize_t)name->file.size, (unsigned long)name->first_line,
                         bytes_of(thread), (Py_ssize_t)thread.size, (unsigned long long)row->calls,
                         (unsigned long long)row->own_ns, (unsigned long long)row->total_ns,
                         (unsigned long long)row->min_ns, (unsigned long long)row->max_ns,
                         (unsigned long)row->name);
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

/* Passes rows to Python while they are made. */
typedef struct passing {
    kpti_long_call *call;
    kpti_profile *profile;
    kpti_thread_sums *sums; /* NULL: not wanted */
    PyObject *take;
    int has_steps;
} passing;

static kpt_status add_to_sums(const passing *p, const kpti_profile_row *rows, uint32_t count)
{
    kpt_status status = KPT_OK;
    for (uint32_t i = 0; p->sums && i < count && status == KPT_OK; i++) {
        const kpt_thread *thread = kpti_profile_thread(p->profile, rows[i].thread);
        const kpt_str name = thread ? thread->name : (kpt_str){"", 0};
        status = kpti_thread_sums_add(p->sums, name, rows[i].calls, rows[i].own_ns);
    }
    return status;
}

/* A kpti_profile_take_fn; the GIL is released. */
static kpt_status pass_rows(void *ctx, const kpti_profile_row *rows, uint32_t count)
{
    const passing *p = ctx;
    const shown table = {p->profile, rows, p->has_steps};
    kpt_status status = add_to_sums(p, rows, count);
    PyObject *answer;
    if (status != KPT_OK) return status;
    PyEval_RestoreThread(p->call->released);
    answer = kpti_rows_to_lists(&table, count, make_row, p->take);
    p->call->raised = !answer;
    Py_XDECREF(answer);
    p->call->released = PyEval_SaveThread();
    return p->call->raised ? KPT_E_STATE : KPT_OK;
}

/* Delivers the recording to PASSES->profile, and passes all rows. Returns 0 with an exception. */
static int pass_all(kpti_session *session, PyObject *progress, passing *passes)
{
    kpti_long_call call = {NULL, progress == Py_None ? NULL : progress, 0};
    const kpti_session_watch watch = kpti_watch_of(&call);
    kpti_session_error error;
    kpt_status status;
    passes->call = &call;
    kpti_profile_pass(passes->profile, pass_rows, passes);
    call.released = PyEval_SaveThread();
    status = kpti_session_profile(session, &watch, passes->profile, &error);
    if (status == KPT_OK && !call.raised) {
        status = kpti_profile_pass_rest(passes->profile);
        if (status == KPT_E_MEMORY)
            (void)kpti_session_fail(&error, status, "no memory for the table");
    }
    PyEval_RestoreThread(call.released);
    if (status == KPT_OK && !call.raised) return 1;
    (void)kpti_raise(&error, NULL);
    return 0;
}

const char kpti_profile_doc[] =
    "profile(trace, sort, most, by_thread, progress[, steps[, take]]) -> rows by function; with "
    "STEPS, "
    "sorted pairs of int64 times, by function and step: the last items of a row are the "
    "step's number, from 1, or 0 outside of steps, and whether it is an operator. TAKE is called "
    "with lists of rows, which are not returned then: rows by thread while they are made, in the "
    "order of their threads";

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
    if (kpti_profile_open(&heap, by_thread ? KPTI_PROFILE_BY_THREAD : 0, &made) != KPT_OK)
        return PyErr_NoMemory();
    if (steps)
        kpti_profile_by_step(made, (const void *)steps,
                             (uint32_t)((size_t)steps_size / sizeof(kpti_profile_step)));
    if (by_thread && take != Py_None) {
        passing passes = {.profile = made, .take = take, .has_steps = steps != NULL};
        if (pass_all(session, progress, &passes)) list = Py_NewRef(Py_None);
        kpti_profile_free(made);
        return list;
    }
    if (by_thread) kpti_profile_keep(made, (kpti_profile_sort)sort, max);
    if (progress != Py_None) call.progress = progress;
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

static PyObject *sums_to_list(const kpti_thread_sums *sums, uint64_t most)
{
    PyObject *list = PyList_New(0);
    for (uint64_t i = 0; list && i < sums->count && i < most; i++) {
        const kpti_thread_sum *sum = &sums->sums[i];
        PyObject *row =
            Py_BuildValue("y#KK", sum->name.size ? sum->name.data : "", (Py_ssize_t)sum->name.size,
                          (unsigned long long)sum->calls, (unsigned long long)sum->own_ns);
        if (!row || PyList_Append(list, row) < 0) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

const char kpti_thread_sums_doc[] =
    "thread_sums(trace, most, progress, take) -> (number of names of threads, rows): calls TAKE as "
    "profile() by thread does; the rows are the name, the calls and the own time of the MOST names "
    "with the most calls";

PyObject *kpti_thread_sums_call(PyObject *module, PyObject *args)
{
    static const kpti_heap heap = {NULL, NULL, NULL};
    kpti_thread_sums sums = {.heap = heap};
    passing passes = {.sums = &sums};
    PyObject *capsule;
    PyObject *progress;
    PyObject *result = NULL;
    kpti_session *session;
    unsigned long long most;
    (void)module;
    if (!PyArg_ParseTuple(args, "OKOO", &capsule, &most, &progress, &passes.take)) return NULL;
    session = kpti_session_of(capsule);
    if (!session) return NULL;
    if (kpti_profile_open(&heap, KPTI_PROFILE_BY_THREAD, &passes.profile) != KPT_OK)
        return PyErr_NoMemory();
    if (pass_all(session, progress, &passes)) {
        kpti_thread_sums_finish(&sums);
        result = Py_BuildValue("KN", (unsigned long long)sums.count, sums_to_list(&sums, most));
    }
    kpti_profile_free(passes.profile);
    kpti_thread_sums_free(&sums);
    return result;
}
