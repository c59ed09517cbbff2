/* hook_removal.h: takes the hooks out of the interpreter once no tracer records. */
#ifndef KPTI_PYTHON_TRACER_THREADS_HOOK_REMOVAL_H
#define KPTI_PYTHON_TRACER_THREADS_HOOK_REMOVAL_H

/* Removes the hooks, if no tracer records and no more than OWN are starting: those that the caller answers for.
 * Needs the GIL or a thread state; no lock is held. */
void kpti_remove_hooks_if_idle(int own);

#endif
