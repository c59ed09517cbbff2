/* struct_layouts.h: which CPython structs have the layout that this backend was compiled for. A backend
 * serves all releases of a minor, and a later release may have moved a field.
 *
 * From 3.13 on CPython describes its frames itself. If the description differs, the layout is unknown.
 * Layouts that are not described are valid for the release that the backend was compiled for, and for
 * releases that are known to have the same layouts (KPTI_NEWEST_TESTED). Otherwise the backend calls
 * Python's own functions, which are slower, with the same result. This is decided once, when the backend is
 * opened.
 *
 * The environment variable KPYTRACE_LAYOUTS overrides the decision, for tests and to find out whether a layout is at fault.
 * With "unknown" the backend uses Python's functions for everything, with "described" for everything that
 * CPython does not describe. */
#ifndef KPTI_PYTHON_TRACER_INTERPRETER_STRUCT_LAYOUTS_H
#define KPTI_PYTHON_TRACER_INTERPRETER_STRUCT_LAYOUTS_H

#include "abi/kpt_tracer.h"
#include "python_tracer/interpreter/cpython.h"

/* The layouts that this backend reads if they are known. On a free-threaded Python and on a pre-release,
 * frames count as a layout that it would read. */
#define KPTI_LAYOUTS                                                \
    ((uint32_t)(KPTI_FRAMES_ARE_OBJECTS ? 0 : KPT_LAYOUT_FRAMES) |  \
     (uint32_t)(KPTI_KNOWN_FRAMES ? KPT_LAYOUT_FRAME_OBJECTS : 0) | \
     (uint32_t)(KPTI_TASK_IN_STATE ? KPT_LAYOUT_TASKS : 0))

/* The known layouts: KPT_LAYOUT_*. */
extern uint32_t kpti_layouts __attribute__((visibility("hidden")));

#endif
