/* native_frames.h: C and C++ frames as addresses, and their names. */
#ifndef KPTI_CORE_CALLSTACKS_NATIVE_FRAMES_H
#define KPTI_CORE_CALLSTACKS_NATIVE_FRAMES_H

#include <stdint.h>

enum { KPTI_MAX_NATIVE = 512 };

/* Writes the return addresses on the calling thread's stack to OUT, innermost first, without the
 * innermost frames that are in libkpytrace's libraries. Returns their number. Acquires no GIL, and
 * no lock if the C library can do without. */
uint32_t kpti_native_walk(uint64_t out[KPTI_MAX_NATIVE]);

/* Returns the id, in function_table.h, of the function that contains the call before ADDRESS.
 * Acquires the loader's lock. */
uint32_t kpti_native_function(uint64_t address);

#endif
