#include "hosts/standalone/module/queries/py_steps.h"

#include "hosts/standalone/module/support/py_support.h"
#include "hosts/standalone/session/session_queries.h"

static PyObject *step_to_tuple(const kpti_step_finder *finder, const kpti_step *step)
{
    char buffer[KPTI_MAX_STEP_NAME];
    const kpt_str name = kpti_step_finder_name(finder, step, buffer);
    return Py_BuildValue("LLKN", (long long)step->start_ns, (long long)step->end_ns,
                         (unsigned long long)step->number,
                         PyUnicode_DecodeUTF8(name.data, (Py_ssize_t)name.size, "replace"));
}

static PyObject *steps_to_list(kpti_step_finder *finder)
{
    uint32_t count;
    const kpti_step *steps = kpti_step_finder_steps(finder, &count);
    PyObject *list = PyList_New(0);
    for (uint32_t i = 0; list && i < count; i++) {
        PyObject *step = step_to_tuple(finder, &steps[i]);
        if (!step || PyList_Append(list, step) < 0) Py_CLEAR(list);
        Py_XDECREF(step);
    }
    return list;
}

const char kpti_steps_doc[] =
    "steps(trace) -> [(start ns, end ns, number, name)]: annotations ProfilerStep#N, or spans "
    "named step, or what is between the ends of an optimizer's steps; in the order of their start";

PyObject *kpti_steps_call(PyObject *module, PyObject *capsule)
{
    kpti_long_call call = {NULL, NULL, 0};
    kpti_session *session = kpti_session_of(capsule);
    kpti_session_watch watch;
    kpti_session_error error;
    kpti_step_finder finder;
    PyObject *list = NULL;
    kpt_status status;
    (void)module;
    if (!session) return NULL;
    watch = kpti_watch_of(&call);
    call.released = PyEval_SaveThread();
    status = kpti_session_steps(session, &watch, &finder, &error);
    PyEval_RestoreThread(call.released);
    if (status == KPT_OK && !call.raised)
        list = steps_to_list(&finder);
    else
        (void)kpti_raise(&error, NULL);
    kpti_step_finder_free(&finder);
    return list;
}
