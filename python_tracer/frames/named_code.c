#include "python_tracer/frames/named_code.h"

#if KPTI_NAMED_CODES
#include <stdatomic.h>
#include <stdlib.h>

/* A block is allocated when needed and never freed, so readers need no lock. Writers hold the GIL. */
enum { BLOCK = 4096, BLOCKS = 4096 };
typedef _Atomic(const PyCodeObject *) entry;
static _Atomic(entry *) blocks[BLOCKS];

static entry *entry_of(uint32_t function)
{
    entry *block = function / BLOCK < BLOCKS
                       ? atomic_load_explicit(&blocks[function / BLOCK], memory_order_acquire)
                       : NULL;
    return block ? &block[function % BLOCK] : NULL;
}

void kpti_named_add(uint32_t function, const PyCodeObject *code)
{
    entry *at = entry_of(function);
    if (!at && function / BLOCK < BLOCKS) {
        entry *block = calloc(BLOCK, sizeof *block);
        atomic_store_explicit(&blocks[function / BLOCK], block, memory_order_release);
        at = entry_of(function);
    }
    if (at) atomic_store_explicit(at, code, memory_order_release);
}

void kpti_named_remove(uint32_t function)
{
    entry *at = entry_of(function);
    if (at) atomic_store_explicit(at, NULL, memory_order_release);
}

void kpti_named_clear(void)
{
    for (uint32_t i = 0; i < BLOCKS; i++) {
        entry *block = atomic_load_explicit(&blocks[i], memory_order_relaxed);
        for (uint32_t j = 0; block && j < BLOCK; j++)
            atomic_store_explicit(&block[j], NULL, memory_order_release);
    }
}

int kpti_named_has(uint32_t function, const PyCodeObject *code)
{
    entry *at = entry_of(function);
    return at && atomic_load_explicit(at, memory_order_acquire) == code;
}
#endif
