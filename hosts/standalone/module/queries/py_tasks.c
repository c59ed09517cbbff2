#include "hosts/standalone/module/queries/py_tasks.h"

#include "hosts/standalone/module/support/py_support.h"
#include "hosts/standalone/session/session_queries.h"

/* The list that receives the rows. The caller has released the GIL. */
typedef struct listing {
    kpti_long_call *call;
    PyObject *list; /* NULL if an exception is set */
} listing;

static void add_row(void *ctx, const kpti_task_row *row, const kpti_note *note)
{
    listing *l = ctx;
    PyObject *tuple;
    PyEval_RestoreThread(l->call->released);
    tuple = l->list
                ? Py_BuildValue("y#y#KKLL", note->name.data ? note->name.data : "",
                                (Py_ssize_t)note->name.size, note->args.data ? note->args.data : "",
                                (Py_ssize_t)note->args.size, (unsigned long long)row->resumes,
                                (unsigned long long)row->running_ns, (long long)row->first_ns,
                                (long long)row->last_ns)
                : NULL;
    if (l->list && (!tuple || PyList_Append(l->list, tuple) < 0)) Py_CLEAR(l->list);
    Py_XDECREF(tuple);
    l->call->released = PyEval_SaveThread();
}

const char kpti_tasks_doc[] =
    "tasks(trace, progress) -> (name, coroutine, resumes, running ns, first "
    "ns, last ns) of each task";

PyObject *kpti_tasks_call(PyObject *module, PyObject *args)
{
    static const kpti_heap heap = {NULL, NULL, NULL};
    kpti_long_call call = {NULL, NULL, 0};
    listing l = {&call, NULL};
    kpti_session_watch watch;
    PyObject *capsule;
    PyObject *progress;
    kpti_session *session;
    kpti_task_profile *made;
    kpti_session_error error;
    kpt_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &capsule, &progress)) return NULL;
    session = kpti_session_of(capsule);
    if (!session) return NULL;
    if (progress != Py_None) call.progress = progress;
    if (kpti_task_profile_open(&heap, &made) != KPT_OK) return PyErr_NoMemory();
    l.list = PyList_New(0);
    watch = kpti_watch_of(&call);
    call.released = PyEval_SaveThread();
    status = kpti_session_tasks(session, &watch, made, add_row, &l, &error);
    PyEval_RestoreThread(call.released);
    kpti_task_profile_free(made);
    if (status == KPT_OK && !call.raised) return l.list;
    Py_XDECREF(l.list);
    return kpti_raise(&error, NULL);
}
