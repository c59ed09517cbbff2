#include "core/memory_log/block_tags.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"

static uint64_t mixed_text(uint64_t hash, kpt_str text)
{
    uint64_t word;
    for (; text.size >= sizeof word; text.data += sizeof word, text.size -= sizeof word) {
        memcpy(&word, text.data, sizeof word);
        hash = kpti_hash_mix(hash, word);
    }
    word = text.size << 56;
    if (text.size) memcpy(&word, text.data, text.size);
    return kpti_hash_mix(hash, word);
}

static int same(const kpti_block_tags *tags, const kpt_memory_report *r)
{
    return tags->device_type == r->device_type && tags->device_index == r->device_index &&
           tags->stream == r->stream && tags->category_size == r->category.size &&
           tags->owner_size == r->owner.size &&
           (!r->category.size || memcmp(tags->text, r->category.data, r->category.size) == 0) &&
           (!r->owner.size ||
            memcmp(tags->text + tags->category_size, r->owner.data, r->owner.size) == 0);
}

static kpti_block_tags *make(const kpt_memory_report *r)
{
    kpti_block_tags *tags = malloc(sizeof *tags + r->category.size + r->owner.size);
    if (!tags) return NULL;
    *tags = (kpti_block_tags){r->device_type, r->device_index, r->stream,
                              (uint32_t)r->category.size, (uint32_t)r->owner.size};
    if (r->category.size) memcpy(tags->text, r->category.data, r->category.size);
    if (r->owner.size) memcpy(tags->text + r->category.size, r->owner.data, r->owner.size);
    return tags;
}

/* Returns the slot of R's pool, which is added if there are fewer than MAX. Returns 0 if there are
 * MAX already, or no memory. */
static uint32_t find(kpti_memory_pools *pools, const kpt_memory_report *r, uint32_t max)
{
    const uint64_t of_device = (uint64_t)(uint32_t)r->device_type << 32 | (uint32_t)r->device_index;
    uint64_t hash = kpti_hash_mix(kpti_hash_mix(0, of_device), r->stream);
    kpti_block_tags *made = NULL;
    hash = mixed_text(mixed_text(hash, r->category), r->owner) >> 32;
    for (uint32_t tries = 0; tries < KPTI_POOLS; tries++, hash++) {
        const uint32_t i =
            KPTI_POOLS_OWN + (uint32_t)(hash % (uint64_t)(KPTI_POOLS - KPTI_POOLS_OWN));
        kpti_block_tags *there = atomic_load_explicit(&pools->slots[i], memory_order_acquire);
        if (!there) {
            if (atomic_load_explicit(&pools->count, memory_order_relaxed) >= max) break;
            if (!made && !(made = make(r))) return 0;
            if (atomic_compare_exchange_strong(&pools->slots[i], &there, made)) {
                atomic_fetch_add_explicit(&pools->count, 1, memory_order_relaxed);
                return i;
            }
        }
        if (!same(there, r)) continue; /* another pool, perhaps added just now by another thread */
        free(made);
        return i;
    }
    free(made);
    return 0;
}

static kpt_str cut(kpt_str text)
{
    if (text.size > KPTI_POOL_TEXT) text.size = KPTI_POOL_TEXT;
    return text;
}

uint32_t kpti_memory_pool_of(kpti_memory_pools *pools, const kpt_memory_report *report)
{
    kpt_memory_report r = *report;
    uint32_t number = 0;
    kpti_assert(atomic_load_explicit(&pools->count, memory_order_relaxed) <
                KPTI_POOLS - KPTI_POOLS_OWN); /* a free slot ends each search */
    r.category = cut(r.category);
    r.owner = cut(r.owner);
    if (r.action == KPT_REPORT_ALLOC) {
        number = find(pools, &r, KPTI_POOLS_REPORTED);
        if (number) return number;
        atomic_fetch_add_explicit(&pools->merged, 1, memory_order_relaxed);
    }
    r.stream = 0;
    r.category = r.owner = (kpt_str){NULL, 0};
    number = find(pools, &r, KPTI_POOLS_PLAIN);
    if (number) return number;
    atomic_store_explicit(&pools->other_used, 1, memory_order_relaxed);
    return KPTI_POOL_OTHER;
}

void kpti_memory_pools_clear(kpti_memory_pools *pools)
{
    for (uint32_t i = 0; i < KPTI_POOLS; i++)
        free(atomic_exchange(&pools->slots[i], NULL));
    pools->count = 0;
    pools->other_used = 0;
    pools->merged = 0;
}
