/* tracebacks.h: the backend's combined tracebacks of Python frames, the host's frames and native frames. */
#ifndef KPTI_PYTHON_TRACER_CAPTURE_TRACEBACKS_H
#define KPTI_PYTHON_TRACER_CAPTURE_TRACEBACKS_H

#include "abi/impl/kpti_impl.h"

extern const kpti_tracebacks_impl kpti_python_tracebacks;

#endif
