#include "execution_trace/record/u32_set.h"

#include <stdlib.h>

#include "abi/impl/kpti_impl.h"

enum { FIRST_CAPACITY = 256 };

static uint32_t *find(uint32_t *slots, uint32_t capacity, uint32_t number)
{
    uint32_t at = number * UINT32_C(0x9E3779B1);
    for (at >>= 8;; at++) {
        uint32_t *slot = &slots[at & (capacity - 1)];
        if (!*slot || *slot == number) return slot;
    }
}

KPTI_HOT int kpti_number_set_has(const kpti_number_set *set, uint32_t number)
{
    return set->count && *find(set->slots, set->capacity, number);
}

static int grow(kpti_number_set *set)
{
    const uint32_t capacity = set->capacity ? set->capacity * 2 : FIRST_CAPACITY;
    uint32_t *slots = capacity ? calloc(capacity, sizeof *slots) : NULL;
    if (!slots) return 0;
    for (uint32_t i = 0; i < set->capacity; i++)
        if (set->slots[i]) *find(slots, capacity, set->slots[i]) = set->slots[i];
    free(set->slots);
    set->slots = slots;
    set->capacity = capacity;
    return 1;
}

int kpti_number_set_add(kpti_number_set *set, uint32_t number)
{
    if (set->count >= set->capacity / 2 && !grow(set)) return 0;
    *find(set->slots, set->capacity, number) = number;
    set->count++;
    return 1;
}

void kpti_number_set_clear(kpti_number_set *set)
{
    free(set->slots);
    *set = (kpti_number_set){0};
}
