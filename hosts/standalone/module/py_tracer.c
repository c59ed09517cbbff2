#define PY_SSIZE_T_CLEAN
#include "hosts/standalone/module/py_tracer.h"

#include "hosts/standalone/module/support/py_support.h"
#include "hosts/standalone/session/session.h"

const char kpti_tracer_doc[] = "tracer(trace) -> (address of its functions, handle)";
PyObject *kpti_tracer_call(PyObject *module, PyObject *capsule)
{
    kpti_session *session = kpti_session_of(capsule);
    kpt_tracer tracer;
    (void)module;
    if (!session) return NULL;
    tracer = kpti_session_tracer(session);
    return Py_BuildValue("KK", (unsigned long long)(uintptr_t)tracer.ops,
                         (unsigned long long)tracer.self);
}

/* One row for each counter of kpt_stats. */
static const struct counter {
    const char *name;
    size_t offset;
} counters[] = {
    {"events", offsetof(kpt_stats, events)},
    {"bytes_held", offsetof(kpt_stats, bytes_held)},
    {"events_dropped", offsetof(kpt_stats, events_dropped)},
    {"events_repaired", offsetof(kpt_stats, events_repaired)},
    {"events_filtered", offsetof(kpt_stats, events_filtered)},
    {"chunks_sealed", offsetof(kpt_stats, chunks_sealed)},
    {"chunks_refused", offsetof(kpt_stats, chunks_refused)},
    {"threads", offsetof(kpt_stats, threads)},
    {"threads_unreached", offsetof(kpt_stats, threads_unreached)},
    {"functions_disabled", offsetof(kpt_stats, functions_disabled)},
    {"stacks_walked", offsetof(kpt_stats, stacks_walked)},
    {"layouts_unknown", offsetof(kpt_stats, layouts_unknown)},
};
enum { COUNTERS = sizeof counters / sizeof counters[0] };

static int put_counter(PyObject *dict, const char *name, uint64_t value)
{
    PyObject *number = PyLong_FromUnsignedLongLong(value);
    int done = number && PyDict_SetItemString(dict, name, number) == 0;
    Py_XDECREF(number);
    return done;
}

const char kpti_stats_doc[] = "stats(trace) -> the tracer's counters";
PyObject *kpti_stats_call(PyObject *module, PyObject *capsule)
{
    kpti_session_error error;
    kpt_stats values;
    kpti_session *session = kpti_session_of(capsule);
    PyObject *dict;
    kpt_status status;
    int done = 1;
    (void)module;
    if (!session) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    status = kpti_session_stats(session, &values, &error);
    Py_END_ALLOW_THREADS;
    if (status != KPT_OK) return kpti_raise(&error, NULL);
    dict = PyDict_New();
    for (int i = 0; dict && done && i < COUNTERS; i++) {
        uint64_t value;
        memcpy(&value, (const char *)&values + counters[i].offset, sizeof value);
        done = put_counter(dict, counters[i].name, value);
    }
    if (dict && !done) Py_CLEAR(dict);
    return dict;
}

const char kpti_no_compress_doc[] =
    "no_compress(trace): the .kpt files that an opened trace writes are not packed";
PyObject *kpti_no_compress_call(PyObject *module, PyObject *capsule)
{
    kpti_session *session = kpti_session_of(capsule);
    (void)module;
    if (!session) return NULL;
    kpti_session_no_compress(session);
    return Py_NewRef(Py_None);
}

const char kpti_compact_doc[] =
    "compact(trace): the Chrome JSON that an opened trace writes has no ids, and short names";
PyObject *kpti_compact_call(PyObject *module, PyObject *capsule)
{
    kpti_session *session = kpti_session_of(capsule);
    (void)module;
    if (!session) return NULL;
    kpti_session_compact(session);
    return Py_NewRef(Py_None);
}

const char kpti_skipped_doc[] = "skipped(trace) -> (how many records of the opened file have an "
                                "unknown kind, one of these kinds)";
PyObject *kpti_skipped_call(PyObject *module, PyObject *capsule)
{
    const kpti_session *session = kpti_session_of(capsule);
    uint64_t count;
    uint32_t kind;
    (void)module;
    if (!session) return NULL;
    count = kpti_session_skipped(session, &kind);
    return Py_BuildValue("KI", (unsigned long long)count, (unsigned int)kind);
}
