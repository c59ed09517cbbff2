#include "installation.h"

#include <stdatomic.h>

#include "cpython.h"
#include "exit.h"
#include "gc.h"
#include "hooks.h"
#include "name.h"

static kpti_python_mutex mutex;
static _Atomic unsigned long owner; /* the thread that is inside; 0: none */
static int depth;                   /* the owner's */

void kpti_installation_enter(void)
{
    unsigned long self = PyThread_get_thread_ident();
    if (atomic_load_explicit(&owner, memory_order_relaxed) != self) {
        kpti_python_lock(&mutex);
        atomic_store_explicit(&owner, self, memory_order_relaxed);
    }
    depth++;
}

void kpti_installation_leave(void)
{
    if (--depth > 0) return;
    atomic_store_explicit(&owner, 0, memory_order_relaxed);
    kpti_python_unlock(&mutex);
}

void kpti_installation_forked(void)
{
    mutex = (kpti_python_mutex){0};
    atomic_store_explicit(&owner, 0, memory_order_relaxed);
    depth = 0;
}

/* Leaves a mark in the interpreter; 1 if there was none. A process can end its Python and begin another
 * one at the same addresses, with the same id: only what dies with it tells them apart. */
static int mark_interpreter(void)
{
    static const char key[] = "kpytrace was here";
    PyObject *dict = PyInterpreterState_GetDict(PyInterpreterState_Get()); /* borrowed */
    int fresh = dict && !PyDict_GetItemString(dict, key);
    if (fresh && PyDict_SetItemString(dict, key, Py_None) != 0) PyErr_Clear();
    return fresh;
}

int kpti_installation_prepare(void)
{
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
    int fresh;
    PyErr_Fetch(&type, &value, &traceback);
    fresh = mark_interpreter();
    if (fresh) { /* pointers into the last one are not even to be released */
        kpti_hooks_forget();
        kpti_gc_forget();
        kpti_name_forget();
    }
    (void)kpti_name_prepare();
    if (fresh) kpti_exit_watch();
    PyErr_Restore(type, value, traceback);
    return fresh;
}

void kpti_installation_remove(void)
{
    kpti_hooks_remove();
    kpti_gc_remove();
}
