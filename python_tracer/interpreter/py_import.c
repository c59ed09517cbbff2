#include "python_tracer/interpreter/py_import.h"

#include "python_tracer/interpreter/cpython.h"

#include <stdatomic.h>
#include <time.h>

enum { MAX_WAITS = 1000, WAIT_NS = 1000000 };

static _Atomic int all; /* number of imports in progress */
static __thread int own __attribute__((tls_model("initial-exec")));

PyObject *kpti_import(const char *name)
{
    PyObject *module;
    own++;
    atomic_fetch_add(&all, 1);
    module = PyImport_ImportModule(name);
    atomic_fetch_sub(&all, 1);
    own--;
    return module;
}

void kpti_import_wait(void)
{
    const struct timespec wait = {0, WAIT_NS};
    for (int i = 0; i < MAX_WAITS && atomic_load(&all) != own; i++) {
        Py_BEGIN_ALLOW_THREADS;
        (void)nanosleep(&wait, NULL);
        Py_END_ALLOW_THREADS;
    }
}

void kpti_import_forked(void)
{
    atomic_store(&all, own);
}
