#include "python_tracer/interpreter/struct_layouts.h"

#include <stdlib.h>
#include <string.h>
#include <structmember.h>

#include "python_tracer/interpreter/frame_structs.h"
#if KPTI_DESCRIBES_ITSELF
#include <internal/pycore_runtime.h>
#pragma weak _PyRuntime /* some builds of Python hide it */
#endif

uint32_t kpti_layouts;

#if KPTI_KNOWN_FRAMES
static int is_told(const char *value)
{
    const char *set = getenv("KPYTRACE_LAYOUTS");
    return set && strcmp(set, value) == 0;
}

/* Whether this release is the one that the backend was compiled for, or has the same layouts. */
static int is_tested(void)
{
    return Py_Version == KPTI_COMPILED_FOR ||
           (Py_Version <= KPTI_NEWEST_TESTED && KPTI_COMPILED_FOR <= KPTI_NEWEST_TESTED);
}

/* Whether this release is final. A backend for a release may be opened in a pre-release of the same minor,
 * whose layouts may be different. */
static int is_final(void)
{
    return (Py_Version >> 4 & 0xF) == PY_RELEASE_LEVEL_FINAL;
}

#if KPTI_DESCRIBES_ITSELF
/* Whether frames are as CPython describes them. Returns -1 if it does not describe them. */
static int frames_are_as_described(void)
{
    static const char cookie[] = {'x', 'd', 'e', 'b', 'u', 'g', 'p', 'y'};
    const _Py_DebugOffsets *described = (const _Py_DebugOffsets *)&_PyRuntime;
    if (!described || memcmp(described->cookie, cookie, sizeof cookie) != 0) return -1;
    return described->thread_state.interp == offsetof(PyThreadState, interp) &&
           described->thread_state.current_frame == offsetof(PyThreadState, current_frame) &&
           described->interpreter_frame.size == sizeof(kpti_raw_frame) &&
           described->interpreter_frame.previous == offsetof(kpti_raw_frame, previous) &&
           described->interpreter_frame.executable == offsetof(kpti_raw_frame, f_executable) &&
           described->interpreter_frame.instr_ptr == offsetof(kpti_raw_frame, instr_ptr) &&
           described->interpreter_frame.localsplus == offsetof(kpti_raw_frame, localsplus) &&
           described->interpreter_frame.owner == offsetof(kpti_raw_frame, owner) &&
           described->code_object.co_code_adaptive == offsetof(PyCodeObject, co_code_adaptive);
}
#else
static int frames_are_as_described(void)
{
    return -1;
}
#endif

/* Whether the type of frame objects, which is public, agrees with our declarations: on their size, which
 * includes a frame, and on the offset of f_trace_lines. */
static int objects_are_as_described(void)
{
    const PyMemberDef *member = PyFrame_Type.tp_members;
    const size_t size =
        offsetof(PyFrameObject, _f_frame_data) + offsetof(kpti_raw_frame, localsplus);
    if ((size_t)PyFrame_Type.tp_basicsize != size) return 0;
    for (; member && member->name; member++)
        if (strcmp(member->name, "f_trace_lines") == 0)
            return (size_t)member->offset == offsetof(PyFrameObject, f_trace_lines);
    return 1;
}

__attribute__((constructor)) static void look(void)
{
    const int tested = is_tested() && !is_told("described");
    const int described = frames_are_as_described();
    if (!is_final() || is_told("unknown")) return;
    if (described == 0 || !(tested || described > 0) || !objects_are_as_described()) return;
    kpti_layouts = KPT_LAYOUT_FRAMES;
    if (tested) kpti_layouts = KPTI_LAYOUTS;
}
#endif
