/* pending_exception.h: sets the thread's pending exception aside while our code calls Python. The caller has a
 * thread state. */
#ifndef KPTI_PYTHON_TRACER_INTERPRETER_PENDING_EXCEPTION_H
#define KPTI_PYTHON_TRACER_INTERPRETER_PENDING_EXCEPTION_H

#include "python_tracer/interpreter/cpython.h"

/* The exception, or NULL. Until 3.11 its type, value and traceback are apart. */
typedef struct kpti_pending_exception {
    PyObject *value;
#if !KPTI_WHOLE_EXCEPTIONS
    PyObject *type;
    PyObject *traceback;
#endif
} kpti_pending_exception;

/* Returns the pending exception and clears it. The caller passes it to kpti_exception_restore, once. */
static inline kpti_pending_exception kpti_exception_save(void)
{
    kpti_pending_exception saved;
#if KPTI_WHOLE_EXCEPTIONS
    saved.value = PyErr_GetRaisedException();
#else
    PyErr_Fetch(&saved.type, &saved.value, &saved.traceback);
#endif
    return saved;
}

/* Sets SAVED again, and drops an exception that was raised since. */
static inline void kpti_exception_restore(kpti_pending_exception saved)
{
#if KPTI_WHOLE_EXCEPTIONS
    PyErr_SetRaisedException(saved.value);
#else
    PyErr_Restore(saved.type, saved.value, saved.traceback);
#endif
}

#endif
