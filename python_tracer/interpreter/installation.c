#include "python_tracer/interpreter/installation.h"

#include <stdatomic.h>

#include "core/base/assert.h"
#include "python_tracer/interpreter/cpython.h"
#include "python_tracer/interpreter/pending_exception.h"
#include "python_tracer/interpreter/py_import.h"

static const kpti_installed_parts *parts;
static kpti_python_mutex mutex;
static _Atomic unsigned long owner; /* the thread inside; 0: none */
static int depth;                   /* of the owner */
static int prepared;                /* the current interpreter is prepared */
/* Set from before_fork to after_fork on the forking thread. A fork that had begun when the two were registered calls
 * only the second. */
static __thread int entered_for_fork __attribute__((tls_model("initial-exec")));

void kpti_installation_enter(void)
{
    unsigned long self = PyThread_get_thread_ident();
    if (atomic_load_explicit(&owner, memory_order_relaxed) != self) {
        kpti_python_lock(&mutex);
        /* Acquire and release are for ThreadSanitizer, which does not see Python's lock. */
        (void)atomic_exchange_explicit(&owner, self, memory_order_acquire);
    }
    depth++;
}

void kpti_installation_leave(void)
{
    kpti_assert(depth > 0 && atomic_load_explicit(&owner, memory_order_relaxed));
    if (--depth > 0) return;
    atomic_store_explicit(&owner, 0, memory_order_release);
    kpti_python_unlock(&mutex);
}

void kpti_installation_forked(void)
{
    mutex = (kpti_python_mutex){0};
    atomic_store_explicit(&owner, 0, memory_order_relaxed);
    depth = 0;
    entered_for_fork = 0;
    kpti_import_forked();
}

/* A free-threaded Python stops the world to change hooks. A child forked meanwhile would find the world
 * stopped forever (3.13; test: fork_while_others_start_and_stop). So os.fork waits for every change of ours
 * there, and elsewhere for our imports. */
static PyObject *before_fork(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    if (KPTI_FREE_THREADED) {
        kpti_installation_enter();
        entered_for_fork = 1;
    } else {
        kpti_import_wait();
    }
    Py_RETURN_NONE;
}

static PyObject *after_fork(PyObject *self, PyObject *unused)
{
    (void)self;
    (void)unused;
    if (entered_for_fork) {
        entered_for_fork = 0;
        kpti_installation_leave();
    }
    Py_RETURN_NONE;
}

static PyMethodDef before_method = {"kpytrace_before_fork", before_fork, METH_NOARGS, NULL};
static PyMethodDef after_method = {"kpytrace_after_fork", after_fork, METH_NOARGS, NULL};

static void watch_fork(void)
{
    kpti_pending_exception pending;
    PyObject *posix;
    PyObject *function;
    PyObject *arguments;
    PyObject *keywords;
    pending = kpti_exception_save();
    posix = kpti_import("posix");
    function = posix ? PyObject_GetAttrString(posix, "register_at_fork") : NULL;
    arguments = PyTuple_New(0);
    keywords = Py_BuildValue("{sNsN}", "before", PyCFunction_New(&before_method, NULL),
                             "after_in_parent", PyCFunction_New(&after_method, NULL));
    if (function && arguments && keywords) Py_XDECREF(PyObject_Call(function, arguments, keywords));
    Py_XDECREF(keywords);
    Py_XDECREF(arguments);
    Py_XDECREF(function);
    Py_XDECREF(posix);
    kpti_exception_restore(pending);
}

/* Python has ended, and no Python object may be touched; pointers to them are not even released. A daemon
 * thread may have been inside, and hangs there forever. */
static void python_has_ended(void)
{
    prepared = 0;
    kpti_installation_forked();
    parts->python_ended();
}

void kpti_installation_prepare(void)
{
    parts->prepare();
    if (prepared) return;
    prepared = 1;
    (void)Py_AtExit(python_has_ended);
    watch_fork();
    parts->watch_exit();
}

void kpti_installation_remove(void)
{
    parts->remove();
}

void kpti_installation_use(const kpti_installed_parts *new_parts)
{
    parts = new_parts;
}
