#include "hosts/standalone/module/queries/py_gpu.h"

#include "hosts/standalone/module/support/py_support.h"
#include "hosts/standalone/session/session.h"
#include "hosts/standalone/session/session_queries.h"
#include "writers/gpu/gpu_summary.h"

/* Returns a text as bytes, since names may have any bytes. */
static PyObject *text(const kpti_gpu_log *log, uint32_t number)
{
    const kpt_str found = kpti_gpu_text(log, number);
    return PyBytes_FromStringAndSize(found.data, (Py_ssize_t)found.size);
}

/* Returns (file, line, function), or None. */
static PyObject *frame(const kpti_gpu_log *log, const kpti_gpu_node *node)
{
    if (!node) return Py_NewRef(Py_None);
    return Py_BuildValue("NIN", text(log, node->file), node->line, text(log, node->function));
}

/* Returns (file, line, function), or None, or the forward function of backward work as bytes. */
static PyObject *line(const kpti_gpu_log *log, const kpti_gpu_node *node, uint32_t is_backward,
                      kpt_str forward)
{
    if (!is_backward) return frame(log, node);
    return PyBytes_FromStringAndSize(forward.data, (Py_ssize_t)forward.size);
}

static PyObject *line_of_row(const kpti_gpu_log *log, const kpti_gpu_row *row)
{
    return line(log, row->is_backward ? NULL : kpti_gpu_node_of(log, row->name), row->is_backward,
                row->forward);
}

static PyObject *row_to_tuple(const kpti_gpu_log *log, const kpti_gpu_row *row, int is_line)
{
    PyObject *name = is_line ? line_of_row(log, row) : text(log, row->name);
    return Py_BuildValue("NKKK", name, (unsigned long long)row->count,
                         (unsigned long long)row->total_ns, (unsigned long long)row->max_ns);
}

/* Appends ITEM and takes over its reference. Returns 0 with an exception. */
static int append(PyObject *list, PyObject *item)
{
    const int done = item && PyList_Append(list, item) == 0;
    Py_XDECREF(item);
    return done;
}

static PyObject *rows_to_list(const kpti_gpu_log *log, const kpti_gpu_row *rows, uint32_t count,
                              int is_line)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < count; i++)
        if (!append(list, row_to_tuple(log, &rows[i], is_line))) Py_CLEAR(list);
    return list;
}

static PyObject *gaps_to_list(const kpti_gpu_log *log, const kpti_gpu_busy *busy)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < busy->gap_count; i++) {
        const kpti_gpu_gap *gap = &busy->gaps[i];
        if (!append(list,
                    Py_BuildValue("KKNN",
                                  (unsigned long long)kpti_gpu_ns(busy->first_ns, gap->start_ns),
                                  (unsigned long long)kpti_gpu_ns(gap->start_ns, gap->end_ns),
                                  text(log, gap->text),
                                  line(log, kpti_gpu_own_frame(log, gap->stack), gap->is_backward,
                                       gap->forward))))
            Py_CLEAR(list);
    }
    return list;
}

static PyObject *device_to_dict(const kpti_gpu_log *log, const kpti_gpu_busy *busy)
{
    const kpt_gpu_device *known = kpti_gpu_device_of(log, busy->device);
    const kpt_str name = known ? known->name : (kpt_str){"", 0};
    return Py_BuildValue("{s:I,s:y#,s:K,s:K,s:K,s:K,s:N}", "index", busy->device, "name", name.data,
                         (Py_ssize_t)name.size, "count", (unsigned long long)busy->count, "kernels",
                         (unsigned long long)busy->kernels, "span_ns",
                         (unsigned long long)kpti_gpu_ns(busy->first_ns, busy->last_ns), "busy_ns",
                         (unsigned long long)busy->busy_ns, "gaps", gaps_to_list(log, busy));
}

static PyObject *devices_to_list(const kpti_gpu_log *log, const kpti_gpu_report *report)
{
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < report->device_count; i++)
        if (!append(list, device_to_dict(log, &report->devices[i]))) Py_CLEAR(list);
    return list;
}

typedef struct asked {
    kpti_gpu_report report;
    PyThreadState *released;
    PyObject *answer;
} asked;

/* The session is entered and the log is available. The GIL is not held. */
static kpt_status answer(void *ctx, const kpti_gpu_log *log, kpti_gpu_launches *launches)
{
    asked *a = ctx;
    kpt_status status = kpti_gpu_report_make(&a->report, log, launches);
    if (status != KPT_OK) return status;
    PyEval_RestoreThread(a->released);
    a->answer =
        Py_BuildValue("{s:K,s:K,s:K,s:N,s:N,s:N}", "events", (unsigned long long)log->events,
                      "dropped", (unsigned long long)log->counts.dropped, "lost_kernels",
                      (unsigned long long)log->counts.lost_kernels, "kernels",
                      rows_to_list(log, a->report.names, a->report.name_count, 0), "lines",
                      rows_to_list(log, a->report.lines, a->report.line_count, 1), "devices",
                      devices_to_list(log, &a->report));
    a->released = PyEval_SaveThread();
    return KPT_OK;
}

const char kpti_gpu_report_doc[] =
    "gpu_report(trace) -> GPU activities, added up by kernel, line and device";

PyObject *kpti_gpu_report_call(PyObject *module, PyObject *capsule)
{
    kpti_session *session = kpti_session_of(capsule);
    kpti_session_error error;
    kpt_status status;
    asked a = {{.heap = {NULL, NULL, NULL}}, NULL, NULL};
    (void)module;
    if (!session) return NULL;
    a.released = PyEval_SaveThread();
    status = kpti_session_with_gpu(session, answer, &a, &error);
    PyEval_RestoreThread(a.released);
    kpti_gpu_report_free(&a.report);
    if (status != KPT_OK) return kpti_raise(&error, NULL);
    return a.answer;
}

const char kpti_gpu_doc[] =
    "gpu(trace) -> (reason why GPUs are not recorded or None, kernels, dropped, lost)";

PyObject *kpti_gpu_call(PyObject *module, PyObject *capsule)
{
    const kpti_session *session = kpti_session_of(capsule);
    const kpti_gpu_log *log;
    (void)module;
    if (!session) return NULL;
    log = kpti_session_gpu(session);
    return Py_BuildValue("zKKK", kpti_session_gpu_reason(session), (unsigned long long)log->kernels,
                         (unsigned long long)log->counts.dropped,
                         (unsigned long long)log->counts.lost_kernels);
}

static void free_log(PyObject *lent)
{
    Py_XDECREF((PyObject *)PyCapsule_GetContext(lent));
}

const char kpti_gpu_log_doc[] = "gpu_log(trace) -> a capsule with the GPU activities of the "
                                "stopped trace, or None if it has none";

PyObject *kpti_gpu_log_call(PyObject *module, PyObject *capsule)
{
    kpti_session *session = kpti_session_of(capsule);
    const kpti_gpu_log *log;
    PyObject *lent;
    (void)module;
    if (!session) return NULL;
    if (kpti_session_is_recording(session)) {
        PyErr_SetString(PyExc_RuntimeError, "the trace is running");
        return NULL;
    }
    log = kpti_session_gpu(session);
    if (!log->events && !log->device_count) return Py_NewRef(Py_None);
    lent = PyCapsule_New((void *)(uintptr_t)log, KPTI_GPU_LOG_CAPSULE, free_log);
    if (lent) (void)PyCapsule_SetContext(lent, Py_NewRef(capsule));
    return lent;
}
