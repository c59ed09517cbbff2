#include "hosts/standalone/module/py_triggers.h"

#include "hosts/standalone/module/support/py_support.h"
#include "hosts/standalone/session/session_triggers.h"

const char kpti_step_doc[] = "step(trace, optimizer): the optimizer, a number, has made a step";

PyObject *kpti_step_call(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    kpti_session *session;
    unsigned long long optimizer;
    (void)module;
    if (!PyArg_ParseTuple(args, "OK", &capsule, &optimizer)) return NULL;
    session = kpti_session_of(capsule);
    if (!session) return NULL;
    kpti_triggers_optimizer(session, optimizer);
    return Py_NewRef(Py_None);
}

const char kpti_ask_dump_doc[] = "ask_dump(trace, reason): the flight recorder writes itself soon, "
                                 "because another process asks for it";

PyObject *kpti_ask_dump_call(PyObject *module, PyObject *args)
{
    PyObject *capsule;
    kpti_session *session;
    const char *reason;
    (void)module;
    if (!PyArg_ParseTuple(args, "Os", &capsule, &reason)) return NULL;
    session = kpti_session_of(capsule);
    if (!session) return NULL;
    kpti_triggers_ask(session, reason);
    return Py_NewRef(Py_None);
}

const char kpti_own_dumps_doc[] =
    "own_dumps(trace) -> (number of dumps that this process triggered itself, reason of the last)";

PyObject *kpti_own_dumps_call(PyObject *module, PyObject *capsule)
{
    char reason[KPTI_MAX_REASON];
    kpti_session *session = kpti_session_of(capsule);
    uint32_t own;
    (void)module;
    if (!session) return NULL;
    own = kpti_triggers_own(session, reason);
    return Py_BuildValue("Is", own, reason);
}
