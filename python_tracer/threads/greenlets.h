/* greenlets.h: greenlets, where the program uses them. Each has a stack of its own, and so a virtual thread of its own: a
 * kpti_thread that the real one, its OS thread, records through while the greenlet runs. So calls nest in each.
 *
 * The greenlet module tells its trace function, which each thread has for itself, of every switch. Ours is put
 * there once the module is found, calls the one that was there before, and goes again with the first switch
 * after the tracers. A program that sets another one later has what it runs from then on in one virtual thread, where
 * replay mends the nesting. */
#ifndef KPTI_PYTHON_TRACER_THREADS_GREENLETS_H
#define KPTI_PYTHON_TRACER_THREADS_GREENLETS_H

#include "python_tracer/state/active_tracers.h"
#include "python_tracer/state/thread_state.h"

/* Has the switches of THREAD, the calling one, told, if they are wanted and the module is there. The callback
 * has stepped out; a pending exception is left alone. For each first sight of a function. */
void kpti_greenlets_watch_slow(kpti_thread *thread);
static inline void kpti_greenlets_watch(kpti_thread *thread)
{
    if (__builtin_expect(atomic_load_explicit(&kpti_greenlets_wanted, memory_order_relaxed), 0) &&
        !thread->os_thread && !thread->greenlet_hook_installed)
        kpti_greenlets_watch_slow(thread);
}

/* THREAD, a real one, has ended, and none of Python may be touched: its virtual threads carry nothing more. */
void kpti_greenlets_thread_ended(kpti_thread *thread);
/* The interpreter has ended. */
void kpti_greenlets_forget(void);

#endif
