/* noop.h: the tracer, memory tracer, observer, traceback object and GPU tracer that do nothing,
 * correctly: every call is legal and has no effect, no file is created, and no memory is kept. A
 * host gets a no-op if there is no Python to trace, so no-ops depend neither on Python nor on the
 * plugin. */
#ifndef KPTI_NOOP_H
#define KPTI_NOOP_H

#include "abi/impl/kpti_impl.h"

extern const kpti_tracer_impl kpti_noop_tracer;
extern const kpti_memory_impl kpti_noop_memory;
extern const kpti_observer_impl kpti_noop_observer;
extern const kpti_tracebacks_impl kpti_noop_tracebacks;
extern const kpti_gpu_impl kpti_noop_gpu;

#endif
