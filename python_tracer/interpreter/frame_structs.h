/* frame_structs.h: CPython's own declarations of a frame, on releases with a known layout
 * (KPTI_KNOWN_FRAMES). */
#ifndef KPTI_PYTHON_TRACER_INTERPRETER_FRAME_STRUCTS_H
#define KPTI_PYTHON_TRACER_INTERPRETER_FRAME_STRUCTS_H

#include "python_tracer/interpreter/cpython.h"

#if KPTI_KNOWN_FRAMES
#define Py_BUILD_CORE 1
#include <internal/pycore_frame.h>
#if __has_include(<internal/pycore_interpframe.h>)
#include <internal/pycore_interpframe.h>
#endif
#if KPTI_TASK_IN_STATE
#include <internal/pycore_tstate.h>
#endif

typedef struct _PyInterpreterFrame kpti_raw_frame;
#endif

#endif
