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
