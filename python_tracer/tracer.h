/* tracer.h: the operations of a tracer, as the plugin calls them. */
#ifndef KPTI_PYTHON_TRACER_TRACER_H
#define KPTI_PYTHON_TRACER_TRACER_H

#include "abi/impl/kpti_impl.h"

extern const kpti_tracer_impl kpti_python_tracer;

#endif
