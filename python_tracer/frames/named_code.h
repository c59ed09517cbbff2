/* named_code.h: the code objects whose slot is filled (function_naming.h), for threads without the GIL.
 * These may not read a code object's slot, since another thread may move it. From 3.12 on a code object has
 * a version, which identifies it without the slot. On 3.11 (KPTI_NAMED_CODES) these threads search here. If
 * a code object is not named yet, the thread asks the main thread to name all running code objects.
 *
 * There is one code object per function id, the last that was named. Of two code objects with equal
 * contents, the other is found by its contents each time, which is correct, but slower. */
#ifndef KPTI_PYTHON_TRACER_FRAMES_NAMED_CODE_H
#define KPTI_PYTHON_TRACER_FRAMES_NAMED_CODE_H

#include "python_tracer/interpreter/cpython.h"

#define KPTI_NAMED_CODES (KPTI_KNOWN_FRAMES && !KPTI_CODES_HAVE_VERSIONS)

#if KPTI_NAMED_CODES
/* The caller holds the GIL. add: CODE's slot holds FUNCTION. remove: the code object with FUNCTION dies.
 * clear: all slots are gone. */
void kpti_named_add(uint32_t function, const PyCodeObject *code);
void kpti_named_remove(uint32_t function);
void kpti_named_clear(void);
/* Needs no GIL. CODE must be running on the calling thread. */
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
