#include "writers/memory/memory_live.h"

#include "core/base/growable_array.h"
#include "core/base/hash.h"

/* What identifies a block. */
typedef struct place {
    uint64_t address;
    uint32_t space;
} place;

static uint32_t space_of(const kpti_memory_live *live, uint32_t pool)
{
    return live->pools[pool].space;
}

static const kpti_memory_block *block_of(const void *slot, const kpti_memory_live *live)
{
    return kpti_memory_live_at(live, *(const uint32_t *)slot - 1);
}

static int is_used(const void *slot)
{
    return *(const uint32_t *)slot != 0;
}

static int has_key(const void *slot, const void *key, const void *live)
{
    const kpti_memory_block *block = block_of(slot, live);
    const place *wanted = key;
    return block->address == wanted->address &&
           space_of(live, kpti_memory_block_pool(block)) == wanted->space;
}

static uint64_t hash_of(uint64_t address, uint32_t space)
{
    return kpti_hash_spread(address + space) >> 20;
}

static uint64_t hash(const void *slot, const void *live)
{
    const kpti_memory_block *block = block_of(slot, live);
    return hash_of(block->address, space_of(live, kpti_memory_block_pool(block)));
}

static const kpti_hash_slots slots = {sizeof(uint32_t), 4096, is_used, has_key, hash};

static uint32_t *slot_of(const kpti_memory_live *live, place wanted)
{
    return kpti_hash_table_find(&live->table, &slots, hash_of(wanted.address, wanted.space),
                                &wanted, live);
}

/* Makes space in the table, which is up to three quarters full: at half, live blocks would take more than 40 bytes. */
static int reserve_slot(kpti_memory_live *live)
{
    if (live->table.count * 4 < live->table.capacity * 3) return 1;
    return kpti_hash_table_grow(&live->table, &slots, &kpti_malloc_heap, live);
}

/* Returns the index + 1 of a block that is not used, or 0 if there is no memory. */
static uint32_t unused_block(kpti_memory_live *live)
{
    const uint32_t index = live->free;
    const uint64_t page = live->used / KPTI_MEMORY_PAGE;
    if (index) {
        live->free = kpti_memory_live_at(live, index - 1)->number;
        return index;
    }
    if (live->used == UINT32_MAX - 1 ||
        !kpti_array_reserve(&kpti_malloc_heap, &live->pages, &live->page_capacity, page + 1,
                            sizeof(kpti_memory_block *)))
        return 0;
    if (!live->pages[page])
        live->pages[page] = malloc(KPTI_MEMORY_PAGE * sizeof(kpti_memory_block));
    return live->pages[page] ? ++live->used : 0;
}

int kpti_memory_live_add(kpti_memory_live *live, const kpti_memory_block *block,
                         kpti_memory_block *ended)
{
    const place wanted = {block->address, space_of(live, kpti_memory_block_pool(block))};
    uint32_t *slot;
    uint32_t index;
    if (!reserve_slot(live)) return -1;
    slot = slot_of(live, wanted);
    if (*slot) {
        kpti_memory_block *old = kpti_memory_live_at(live, *slot - 1);
        *ended = *old;
        *old = *block;
        return 1;
    }
    index = unused_block(live);
    if (!index) return -1;
    *kpti_memory_live_at(live, index - 1) = *block;
    *slot = index;
    live->table.count++;
    return 0;
}

int kpti_memory_live_remove(kpti_memory_live *live, uint64_t address, uint32_t pool,
                            kpti_memory_block *ended)
{
    kpti_memory_block *block;
    uint32_t *slot;
    uint32_t index;
    if (!live->table.count) return 0;
    slot = slot_of(live, (place){address, space_of(live, pool)});
    if (!*slot) return 0;
    index = *slot;
    block = kpti_memory_live_at(live, index - 1);
    *ended = *block;
    kpti_hash_table_remove(&live->table, &slots, slot, live);
    block->number = live->free;
    live->free = index;
    return 1;
}

static int by_place(const void *a, const void *b, void *ctx)
{
    const kpti_memory_live *live = ctx;
    const kpti_memory_block *x = kpti_memory_live_at(live, *(const uint32_t *)a);
    const kpti_memory_block *y = kpti_memory_live_at(live, *(const uint32_t *)b);
    const uint32_t x_space = space_of(live, kpti_memory_block_pool(x));
    const uint32_t y_space = space_of(live, kpti_memory_block_pool(y));
    if (x_space != y_space) return x_space < y_space ? -1 : 1;
    return x->address < y->address ? -1 : x->address > y->address;
}

/* Returns whether A, which begins before B, overlaps it. */
static int reaches(const kpti_memory_live *live, const kpti_memory_block *a,
                   const kpti_memory_block *b)
{
    return space_of(live, kpti_memory_block_pool(a)) == space_of(live, kpti_memory_block_pool(b)) &&
           a->address + kpti_memory_block_size(a) > b->address;
}

/* The table becomes the list, since nothing is looked up any more. */
uint32_t kpti_memory_live_list(kpti_memory_live *live, uint32_t **indices)
{
    uint32_t *list = live->table.slots;
    uint32_t count = 0;
    uint32_t kept = 0;
    for (uint64_t i = 0; i < live->table.capacity; i++)
        if (list[i]) list[count++] = list[i] - 1;
    if (count) qsort_r(list, count, sizeof *list, by_place, live);
    for (uint32_t i = 0; i < count;
         i++) { /* kept blocks do not overlap, and end at the end of the last one */
        const kpti_memory_block *block = kpti_memory_live_at(live, list[i]);
        int lost = 0;
        while (kept && !lost && reaches(live, kpti_memory_live_at(live, list[kept - 1]), block)) {
            lost = kpti_memory_live_at(live, list[kept - 1])->number > block->number;
            kept -= !lost;
        }
        if (!lost) list[kept++] = list[i];
    }
    *indices = list;
    return kept;
}

void kpti_memory_live_free(kpti_memory_live *live)
{
    for (uint64_t i = 0; i < live->page_capacity; i++)
        free(live->pages[i]);
    free(live->pages);
    kpti_hash_table_free(&live->table, &slots, &kpti_malloc_heap);
    memset(live, 0, sizeof *live);
}
