/* greenlets.h: virtual threads for greenlets. Each greenlet has its own stack and so its own virtual
 * thread: a kpti_thread through which the OS thread records while the greenlet runs. So calls nest within
 * each greenlet.
 *
 * The greenlet module calls a trace function, one per thread, at every switch. Ours is installed once the
 * module is found. It calls the previous trace function, and is removed at the first switch after the last
 * tracer has stopped. If a program installs another trace function later, everything that it runs from then
 * on is recorded in one virtual thread, and replay repairs the nesting. */
#ifndef KPTI_PYTHON_TRACER_THREADS_GREENLETS_H
#define KPTI_PYTHON_TRACER_THREADS_GREENLETS_H

#include "python_tracer/state/active_tracers.h"
#include "python_tracer/state/thread_state.h"

/* Installs our trace function on THREAD, the calling thread, if the module is loaded. The callback is
 * suspended. A pending exception is left alone. kpti_greenlets_watch is called whenever a thread names a
 * function. */
void kpti_greenlets_watch_slow(kpti_thread *thread);
static inline void kpti_greenlets_watch(kpti_thread *thread)
{
    if (__builtin_expect(atomic_load_explicit(&kpti_greenlets_wanted, memory_order_relaxed), 0) &&
        !thread->os_thread && !thread->greenlet_hook_installed)
        kpti_greenlets_watch_slow(thread);
}

/* THREAD, an OS thread, has ended, so its virtual threads record nothing more. Touches no Python object. */
void kpti_greenlets_thread_ended(kpti_thread *thread);
/* Forgets all objects, since the interpreter has ended. */
void kpti_greenlets_forget(void);

#endif
