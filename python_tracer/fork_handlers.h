/* fork_handlers.h: what a fork finds: no lock of ours held by a thread that the child does not have. */
#ifndef KPTI_PYTHON_TRACER_FORK_HANDLERS_H
#define KPTI_PYTHON_TRACER_FORK_HANDLERS_H

/* Once a process, however often it is called. */
void kpti_fork_watch(void);

#endif
