#include "hosts/standalone/module/queries/py_findings.h"

#include "hosts/standalone/module/support/py_support.h"
#include "hosts/standalone/session/session_queries.h"

const char kpti_explain_doc[] = "explain(trace, progress) -> what stands out, as JSON in UTF-8: "
                                "the object of `kpytrace explain "
                                "--json`";

PyObject *kpti_explain_call(PyObject *module, PyObject *args)
{
    static const kpti_heap heap = {NULL, NULL, NULL};
    kpti_long_call call = {NULL, NULL, 0};
    kpti_text_builder text = {.heap = heap};
    kpti_session_watch watch;
    kpti_session_error error;
    PyObject *capsule;
    PyObject *progress;
    PyObject *answer = NULL;
    kpti_session *session;
    kpt_status status;
    (void)module;
    if (!PyArg_ParseTuple(args, "OO", &capsule, &progress)) return NULL;
    session = kpti_session_of(capsule);
    if (!session) return NULL;
    if (progress != Py_None) call.progress = progress;
    watch = kpti_watch_of(&call);
    call.released = PyEval_SaveThread();
    status = kpti_session_explain(session, &watch, &text, &error);
    PyEval_RestoreThread(call.released);
    if (status == KPT_OK && !call.raised)
        answer = PyBytes_FromStringAndSize(text.text, (Py_ssize_t)text.size);
    else
        (void)kpti_raise(&error, NULL);
    kpti_text_builder_free(&text);
    return answer;
}
