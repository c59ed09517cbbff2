#include "execution_trace/record/u32_set.h"

#include "abi/impl/kpti_impl.h"
#include "core/base/assert.h"
#include "core/base/hash.h"

/* A slot is the number; 0 marks an empty one. */
static int is_used(const void *slot)
{
    return *(const uint32_t *)slot != 0;
}

static int has_key(const void *slot, const void *number, const void *ctx)
{
    (void)ctx;
    return *(const uint32_t *)slot == *(const uint32_t *)number;
}

static uint64_t hash(const void *slot, const void *ctx)
{
    (void)ctx;
    return kpti_hash_spread(*(const uint32_t *)slot) >> 32;
}

static const kpti_hash_slots slots = {sizeof(uint32_t), 256, is_used, has_key, hash};

KPTI_HOT int kpti_number_set_has(const kpti_number_set *set, uint32_t number)
{
    return set->table.count && *(uint32_t *)kpti_hash_table_find(
                                   &set->table, &slots, hash(&number, NULL), &number, NULL);
}

int kpti_number_set_add(kpti_number_set *set, uint32_t number)
{
    if (!kpti_hash_table_reserve(&set->table, &slots, &kpti_malloc_heap, NULL)) return 0;
    *(uint32_t *)kpti_hash_table_place(&set->table, &slots, hash(&number, NULL)) = number;
    set->table.count++;
    return 1;
}

void kpti_number_set_clear(kpti_number_set *set)
{
    kpti_hash_table_free(&set->table, &slots, &kpti_malloc_heap);
}
