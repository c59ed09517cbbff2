#include "execution_trace/output/tensor_ids.h"

#include "core/base/hash.h"

enum { NEIGHBOURS = 8 };

typedef struct slot {
    uint64_t key;
    uint64_t generation;
    uint64_t id; /* 0 if the slot is empty */
} slot;

static int is_used(const void *s)
{
    return ((const slot *)s)->id != 0;
}

static int has_key(const void *s, const void *wanted, const void *ctx)
{
    const slot *a = s;
    const slot *b = wanted;
    (void)ctx;
    return a->key == b->key && a->generation == b->generation;
}

/* Hosts that number tensors by counting use near numbers at near times. Blocks of NEIGHBOURS numbers share
 * cache lines, and are so small that a collision is resolved within a few slots. */
static uint64_t hash(const void *s, const void *ctx)
{
    const slot *of = s;
    const uint64_t block = of->key / NEIGHBOURS ^ of->generation * UINT64_C(0xFF51AFD7ED558CCD);
    (void)ctx;
    return (kpti_hash_spread(block) >> 20) * NEIGHBOURS + of->key % NEIGHBOURS;
}

static const kpti_hash_slots slots = {sizeof(slot), 1024, is_used, has_key, hash};

/* Not inlined, so that the usual path saves no registers for it. */
static __attribute__((noinline)) int grow(kpti_et_ids *ids, const kpti_heap *heap)
{
    return kpti_hash_table_grow(&ids->table, &slots, heap, NULL);
}

uint64_t kpti_et_ids_of(kpti_et_ids *ids, const kpti_heap *heap, uint64_t key, uint64_t generation,
                        uint64_t *next, int *failed)
{
    const slot wanted = {key, generation, 0};
    slot *found;
    if (!key) return 0;
    if (kpti_hash_table_is_full(&ids->table) && !grow(ids, heap)) {
        *failed = 1;
        return 0;
    }
    found = kpti_hash_table_find(&ids->table, &slots, hash(&wanted, NULL), &wanted, NULL);
    if (!found->id) {
        *found = (slot){key, generation, (*next)++};
        ids->table.count++;
    }
    return found->id;
}

void kpti_et_ids_free(kpti_et_ids *ids, const kpti_heap *heap)
{
    kpti_hash_table_free(&ids->table, &slots, heap);
}
