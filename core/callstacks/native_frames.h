/* native_frames.h: frames of C and C++, as addresses, and their names. */
#ifndef KPTI_CORE_CALLSTACKS_NATIVE_FRAMES_H
#define KPTI_CORE_CALLSTACKS_NATIVE_FRAMES_H

#include <stdint.h>

enum { KPTI_MOST_NATIVE = 512 };

/* The return addresses on the calling thread's stack, innermost first, without this library's own. No
 * lock, where the C library can do without, and no GIL. */
uint32_t kpti_native_walk(uint64_t out[KPTI_MOST_NATIVE]);

/* The function, as function_table.h knows it, that the call before ADDRESS lies in. Takes the loader's lock. */
uint32_t kpti_native_function(uint64_t address);

#endif
