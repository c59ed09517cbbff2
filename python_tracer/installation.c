#include "installation.h"

#include <stdatomic.h>

#include "cpython.h"
#include "exit.h"
#include "gc.h"
#include "hooks.h"
#include "name.h"
#include "session.h"

static kpti_python_mutex mutex;
static _Atomic unsigned long owner; /* the thread that is inside; 0: none */
static int depth;                   /* the owner's */
static int prepared;                /* the interpreter that runs now */

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

/* Python has ended, and none of it may be touched: pointers into it are not even to be released. A
 * daemon thread may have been inside, and hangs there for good. */
static void python_has_ended(void)
{
    prepared = 0;
    kpti_installation_forked();
    kpti_session_end();
    kpti_hooks_forget();
    kpti_gc_forget();
    kpti_name_forget();
}

void kpti_installation_prepare(void)
{
    (void)kpti_name_prepare();
    if (prepared) return;
    prepared = 1;
    (void)Py_AtExit(python_has_ended);
    kpti_exit_watch();
}

void kpti_installation_remove(void)
{
    kpti_hooks_remove();
    kpti_gc_remove();
}
