#include "writers/encode/escaped_strings.h"

#include "core/base/assert.h"

enum { BLOCK_BYTES = 64 * 1024 };

/* Texts are stored one after the other. A block never moves. */
typedef struct kpti_fragment_block {
    struct kpti_fragment_block *before;
    size_t capacity;
    size_t used;
    char bytes[];
} block;

static block *add_block(kpti_fragments *table, size_t size)
{
    size_t capacity = (size > BLOCK_BYTES ? size : BLOCK_BYTES) + KPTI_FRAGMENT_STEP;
    block *added = kpti_heap_take(&table->heap, sizeof *added + capacity);
    if (!added) return NULL;
    added->before = table->block;
    added->capacity = capacity;
    added->used = 0;
    table->block = added;
    return added;
}

char *kpti_fragments_reserve(kpti_fragments *table, size_t size)
{
    block *last = table->block;
    if (!last || last->capacity - last->used < size + KPTI_FRAGMENT_STEP)
        last = add_block(table, size);
    return last ? last->bytes + last->used : NULL;
}

kpt_status kpti_fragments_set(kpti_fragments *table, uint32_t number, const char *text, size_t size,
                              uint32_t note)
{
    kpt_status status;
    if (size > UINT32_MAX) return KPT_E_LIMIT;
    status = kpti_array_reach(&table->heap, &table->items, &table->capacity, number,
                              sizeof *table->items);
    if (status != KPT_OK) return status;
    kpti_assert(text == table->block->bytes + table->block->used); /* as reserve returned it */
    kpti_assert(table->block->used + size + KPTI_FRAGMENT_STEP <= table->block->capacity);
    table->count += table->items[number].text == NULL;
    table->items[number] = (kpti_fragment){text, (uint32_t)size, note};
    table->block->used += size;
    kpti_assert(table->count <= table->capacity);
    return KPT_OK;
}

void kpti_fragments_keep(kpti_fragments *table, size_t size)
{
    kpti_assert(table->block->used + size + KPTI_FRAGMENT_STEP <= table->block->capacity);
    table->block->used += size;
}

void kpti_fragments_free(kpti_fragments *table)
{
    for (block *b = table->block; b;) {
        block *before = b->before;
        kpti_heap_give(&table->heap, b, sizeof *b + b->capacity);
        b = before;
    }
    kpti_heap_give(&table->heap, table->items, table->capacity * sizeof *table->items);
    table->items = NULL;
    table->capacity = 0;
    table->count = 0;
    table->block = NULL;
}
