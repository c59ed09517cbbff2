/* named_code.h: the code objects whose slot is filled (function_naming.h), for threads without the GIL. These may not read a code
 * object's slot, which another thread may move. From 3.12 on a code object has a version, by which they know it again
 * without; on 3.11 (KPTI_NAMED_CODES) they look here, and where a code object is not named yet, ask the main thread to
 * name all that run.
 *
 * One code object for each function id, the last that was named: of two with equal contents one is found by its
 * contents each time, which is right, but slower. */
#ifndef KPTI_PYTHON_TRACER_FRAMES_NAMED_CODE_H
#define KPTI_PYTHON_TRACER_FRAMES_NAMED_CODE_H

#include "python_tracer/interpreter/cpython.h"

#define KPTI_NAMED_CODES (KPTI_KNOWN_FRAMES && !KPTI_CODES_HAVE_VERSIONS)

#if KPTI_NAMED_CODES
/* With the GIL: CODE's slot has FUNCTION; a code object that had it dies; all of the slots are gone. */
void kpti_named_add(uint32_t function, const PyCodeObject *code);
void kpti_named_remove(uint32_t function);
void kpti_named_clear(void);
/* Without the GIL, for CODE that the calling thread runs. */
int kpti_named_has(uint32_t function, const PyCodeObject *code);
#else
static inline void kpti_named_add(uint32_t function, const PyCodeObject *code)
{
    (void)function;
    (void)code;
}
static inline void kpti_named_remove(uint32_t function)
{
    (void)function;
}
static inline void kpti_named_clear(void) {}
static inline int kpti_named_has(uint32_t function, const PyCodeObject *code)
{
    (void)function;
    (void)code;
    return 0;
}
#endif

#endif
