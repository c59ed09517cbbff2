/* noop.h: the tracer, memory tracer, observer, gatherer of tracebacks and tracer of GPUs that do nothing, correctly:
 * every call is legal and empty, no file is ever created, and no memory is kept. They are what a host gets where
 * there is no Python, so they know neither Python nor the plugin. */
#ifndef KPTI_NOOP_H
#define KPTI_NOOP_H

#include "abi/impl/kpti_impl.h"

extern const kpti_tracer_impl kpti_noop_tracer;
extern const kpti_memory_impl kpti_noop_memory;
extern const kpti_observer_impl kpti_noop_observer;
extern const kpti_tracebacks_impl kpti_noop_tracebacks;
extern const kpti_gpu_impl kpti_noop_gpu;

#endif
