/* hook_removal.h: removes the hooks from the interpreter once no tracer records. */
#ifndef KPTI_PYTHON_TRACER_THREADS_HOOK_REMOVAL_H
#define KPTI_PYTHON_TRACER_THREADS_HOOK_REMOVAL_H

/* Removes the hooks if no tracer records and at most OWN tracers are starting. OWN counts the caller's
 * tracers. The caller has the GIL or a thread state and holds no lock. */
void kpti_remove_hooks_if_idle(int own);

#endif
