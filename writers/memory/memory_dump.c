#include "writers/memory/memory_dump.h"

#include <stdlib.h>

int kpti_memory_by_stack(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

uint64_t kpti_memory_stack_at(const kpti_memory_dump *dump, uint32_t stack)
{
    const uint32_t *found =
        stack ? bsearch(&stack, dump->stacks, dump->stack_count, sizeof stack, kpti_memory_by_stack)
              : NULL;
    return found ? (uint64_t)(found - dump->stacks) + 1 : 0;
}
