/* memory_tracer.h: the backend's memory tracer. It records each allocation with its stack and time. */
#ifndef KPTI_PYTHON_TRACER_ALLOCATORS_MEMORY_TRACER_H
#define KPTI_PYTHON_TRACER_ALLOCATORS_MEMORY_TRACER_H

#include "abi/impl/kpti_impl.h"

extern const kpti_memory_impl kpti_python_memory;

#endif
