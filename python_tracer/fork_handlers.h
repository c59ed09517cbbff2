/* fork_handlers.h: what a fork finds: no lock of ours held by a thread that the child does not have. */
#ifndef KPTI_PYTHON_TRACER_FORK_HANDLERS_H
#define KPTI_PYTHON_TRACER_FORK_HANDLERS_H

#include "python_tracer/state/fork_watch.h"

extern const kpti_fork_handlers kpti_python_fork_handlers;

#endif
