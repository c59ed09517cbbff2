#include "execution_trace/output/tensor_ids.h"

enum { FIRST_CAPACITY = 1024, NEIGHBOURS = 8 };

static kpti_et_id *find(kpti_et_id *slots, uint64_t capacity, uint64_t key, uint64_t generation)
{
    /* Hosts that number tensors by counting use near numbers at near times. Blocks of NEIGHBOURS numbers
     * share cache lines, and are so small that a collision is resolved within a few slots. */
    const uint64_t block = key / NEIGHBOURS ^ generation * UINT64_C(0xFF51AFD7ED558CCD);
    for (uint64_t at = (block * UINT64_C(0x9E3779B97F4A7C15) >> 20) * NEIGHBOURS + key % NEIGHBOURS;
         ; at++) {
        kpti_et_id *slot = &slots[at & (capacity - 1)];
        if (!slot->id || (slot->key == key && slot->generation == generation)) return slot;
    }
}

static int grow(kpti_et_ids *ids, const kpti_heap *heap)
{
    const uint64_t capacity = ids->capacity ? ids->capacity * 2 : FIRST_CAPACITY;
    kpti_et_id *slots = kpti_heap_take(heap, capacity * sizeof *slots);
    if (!slots) return 0;
    memset(slots, 0, capacity * sizeof *slots);
    for (uint64_t i = 0; i < ids->capacity; i++) {
        const kpti_et_id *old = &ids->slots[i];
        if (old->id) *find(slots, capacity, old->key, old->generation) = *old;
    }
    kpti_heap_give(heap, ids->slots, ids->capacity * sizeof *slots);
    ids->slots = slots;
    ids->capacity = capacity;
    return 1;
}

uint64_t kpti_et_ids_of(kpti_et_ids *ids, const kpti_heap *heap, uint64_t key, uint64_t generation,
                        uint64_t *next, int *failed)
{
    kpti_et_id *slot;
    if (!key) return 0;
    if (ids->count >= ids->capacity / 2 && !grow(ids, heap)) {
        *failed = 1;
        return 0;
    }
    slot = find(ids->slots, ids->capacity, key, generation);
    if (!slot->id) {
        *slot = (kpti_et_id){key, generation, (*next)++};
        ids->count++;
    }
    return slot->id;
}

void kpti_et_ids_free(kpti_et_ids *ids, const kpti_heap *heap)
{
    kpti_heap_give(heap, ids->slots, ids->capacity * sizeof *ids->slots);
    *ids = (kpti_et_ids){0};
}
