/* memory_hooks.h: our place in the chain of Python's allocators, one for each domain. A hook that came after
 * ours stays: where we are not on top when recording ends, ours remain and hand everything on. */
#ifndef KPTI_MEMORY_HOOKS_H
#define KPTI_MEMORY_HOOKS_H

#include <stdint.h>

/* How the log that records wants it. */
typedef struct kpti_memory_wish {
    uint32_t depth;        /* frames of a stack; 0 = all */
    uint64_t sample_bytes; /* mean distance between samples; 0: everything */
} kpti_memory_wish;

/* Puts the hooks where they are not. The GIL is held. */
void kpti_memory_hooks_install(kpti_memory_wish wish);
/* Takes those away that are on top. The GIL is held. */
void kpti_memory_hooks_remove(void);
/* The interpreter is about to end: recording does. The GIL is held. */
void kpti_memory_hooks_exit(void);

#endif
