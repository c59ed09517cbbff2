/* fork_handlers.h: the handlers that acquire all locks of the backend before a fork, so that no lock is
 * held in the child by a thread that the child does not have. */
#ifndef KPTI_PYTHON_TRACER_FORK_HANDLERS_H
#define KPTI_PYTHON_TRACER_FORK_HANDLERS_H

#include "python_tracer/state/fork_watch.h"

extern const kpti_fork_handlers kpti_python_fork_handlers;

#endif
