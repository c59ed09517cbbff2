#include "hosts/standalone/module/queries/py_edges.h"

#include "hosts/standalone/module/support/py_support.h"
#include "hosts/standalone/session/session_queries.h"

const char kpti_edges_doc[] =
    "edges(trace, callers, callees, progress) -> (caller, callee, calls, total ns, own ns) of each "
    "pair of functions: the calls that CALLERS make, and those of CALLEES. These are bytes of 0 or "
    "1, by the number of a function, as profile() returns it, and equally long. The caller of an "
    "outermost call is -1";

static PyObject *make_row(const void *edges, uint32_t index)
{
    const kpti_call_edge *edge = &((const kpti_call_edge *)edges)[index];
    return Py_BuildValue(
        "LkKKK", edge->caller == (uint32_t)KPTI_EDGE_NO_CALLER ? -1LL : (long long)edge->caller,
        (unsigned long)edge->callee, (unsigned long long)edge->calls,
        (unsigned long long)edge->total_ns, (unsigned long long)edge->own_ns);
}

PyObject *kpti_edges_call(PyObject *module, PyObject *args)
{
    kpti_long_call call = {NULL, NULL, 0};
    kpti_session_watch watch;
    kpti_session_error error;
    kpti_call_edges edges;
    kpti_session *session;
    PyObject *capsule;
    PyObject *callers;
    PyObject *callees;
    PyObject *progress;
    PyObject *list = NULL;
    kpt_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "OSSO", &capsule, &callers, &callees, &progress)) return NULL;
    session = kpti_session_of(capsule);
    if (!session) return NULL;
    if (PyBytes_Size(callers) != PyBytes_Size(callees)) {
        PyErr_SetString(PyExc_ValueError, "callers and callees differ in length");
        return NULL;
    }
    kpti_call_edges_init(&edges, &kpti_malloc_heap,
                         (kpti_edge_choice){(const unsigned char *)PyBytes_AsString(callers),
                                            (const unsigned char *)PyBytes_AsString(callees),
                                            (uint32_t)PyBytes_Size(callers)});
    if (progress != Py_None) call.progress = progress;
    watch = kpti_watch_of(&call);
    call.released = PyEval_SaveThread();
    status = kpti_session_edges(session, &watch, &edges, &error);
    PyEval_RestoreThread(call.released);
    if (status == KPT_OK && !call.raised)
        list = kpti_rows_to_lists(edges.edges, edges.count, make_row, Py_None);
    else
        (void)kpti_raise(&error, NULL);
    kpti_call_edges_free(&edges);
    return list;
}
