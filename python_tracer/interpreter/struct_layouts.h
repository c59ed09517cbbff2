/* struct_layouts.h: which parts of CPython lie in memory as this backend was compiled to read them. A backend serves
 * all releases of a minor, and a later one may have moved a field.
 *
 * From 3.13 on CPython describes its frames itself, and a description that differs decides. What is not
 * described holds for the release that the backend was compiled for, and for those that are known to have the
 * same layouts (KPTI_NEWEST_TESTED). Where neither holds, Python's own functions are asked: slower, with the
 * same result. Decided once, when the backend is opened.
 *
 * KPYTRACE_LAYOUTS in the environment overrides it, for tests and for users who suspect it: "unknown" asks
 * Python's functions for everything, "described" for what CPython does not describe. */
#ifndef KPTI_PYTHON_TRACER_INTERPRETER_STRUCT_LAYOUTS_H
#define KPTI_PYTHON_TRACER_INTERPRETER_STRUCT_LAYOUTS_H

#include "abi/kpt_tracer.h"
#include "python_tracer/interpreter/cpython.h"

/* Those that this backend reads, where they are known. A free-threaded Python's, and a pre-release's, are
 * frames that it would read. */
#define KPTI_LAYOUTS                                                \
    ((uint32_t)(KPTI_FRAMES_ARE_OBJECTS ? 0 : KPT_LAYOUT_FRAMES) |  \
     (uint32_t)(KPTI_KNOWN_FRAMES ? KPT_LAYOUT_FRAME_OBJECTS : 0) | \
     (uint32_t)(KPTI_TASK_IN_STATE ? KPT_LAYOUT_TASKS : 0))

/* Those that are known: KPT_LAYOUT_*. */
extern uint32_t kpti_layouts __attribute__((visibility("hidden")));

#endif
