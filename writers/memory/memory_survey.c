#include "writers/memory/memory_survey.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/growable_array.h"

enum { MEGABYTE_BITS = 20 };

/* A cache of megabytes that were added recently: a block is mostly in one that was just added. */
enum { RECENT = 1024 };

typedef struct finder {
    kpti_memory_survey *out;
    kpti_memory_history *history;
    double weighed; /* represented bytes that are alive */
    uint64_t capacity;
    uint64_t joined; /* regions that were left when they were joined last */
    struct {
        uint64_t megabyte; /* + 1 */
        uint32_t device;
    } recent[RECENT];
} finder;

static int by_place(const void *a, const void *b)
{
    const kpti_memory_region *x = a;
    const kpti_memory_region *y = b;
    if (x->device != y->device) return x->device < y->device ? -1 : 1;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Joins adjacent and overlapping regions. */
static void join(finder *f)
{
    kpti_memory_survey *s = f->out;
    uint64_t kept = 0;
    if (s->region_count) qsort(s->regions, s->region_count, sizeof *s->regions, by_place);
    for (uint64_t i = 0; i < s->region_count; i++) {
        const kpti_memory_region *region = &s->regions[i];
        kpti_memory_region *last = kept ? &s->regions[kept - 1] : NULL;
        if (last && last->device == region->device && region->begin <= last->end) {
            if (region->end > last->end) last->end = region->end;
        } else {
            s->regions[kept++] = *region;
        }
    }
    s->region_count = f->joined = kept;
}

static int add_region(finder *f, const kpti_memory_entry *e)
{
    enum { MIN_JOIN = 4096 };
    kpti_memory_survey *s = f->out;
    const uint64_t megabyte = e->address >> MEGABYTE_BITS;
    const uint64_t last = (e->address + (e->size ? e->size : 1) - 1) >> MEGABYTE_BITS;
    const uint32_t slot = (uint32_t)((megabyte + (uint64_t)e->device * 97) % RECENT);
    if (f->recent[slot].megabyte == megabyte + 1 && f->recent[slot].device == e->device &&
        last == megabyte)
        return 1;
    f->recent[slot].megabyte = megabyte + 1;
    f->recent[slot].device = e->device;
    if (s->region_count >= f->joined * 2 + MIN_JOIN) join(f);
    if (!kpti_array_reserve(&kpti_malloc_heap, &s->regions, &f->capacity, s->region_count + 1,
                            sizeof *s->regions))
        return 0;
    s->regions[s->region_count++] =
        (kpti_memory_region){megabyte << MEGABYTE_BITS, (last + 1) << MEGABYTE_BITS, e->device};
    return 1;
}

static void end_block(finder *f, const kpti_memory_block *block)
{
    const uint64_t size = kpti_memory_block_size(block);
    f->out->end.bytes -= size;
    f->out->end.blocks--;
    f->weighed -= (double)size * kpti_memory_weight(size, f->history->sample_bytes);
}

static void add_block(finder *f, const kpti_memory_entry *e)
{
    kpti_memory_survey *s = f->out;
    s->end.bytes += e->size;
    s->end.blocks++;
    f->weighed += (double)e->size * kpti_memory_weight(e->size, f->history->sample_bytes);
    if (s->end.bytes > s->peak.bytes) s->peak = s->end;
    if (f->weighed <= s->peak_weighed) return;
    s->peak_weighed = f->weighed;
    s->peak_after = e->index + 1;
    s->peak_time_ns = e->time_ns;
}

static int read_all(finder *f)
{
    kpti_memory_survey *s = f->out;
    kpti_memory_entry e;
    kpti_memory_history_first(f->history);
    while (kpti_memory_history_next(f->history, &e)) {
        if (e.ends) end_block(f, &e.ended);
        if (e.kind & KPTI_MEMORY_ALLOC)
            add_block(f, &e);
        else
            s->unseen_frees += !e.ends;
        s->entries_of[e.device]++;
        s->end_time_ns = e.time_ns;
        if (!add_region(f, &e)) return 0;
    }
    return !f->history->failed;
}

int kpti_memory_survey_make(kpti_memory_survey *s, kpti_memory_history *history)
{
    finder f = {.out = s, .history = history};
    memset(s, 0, sizeof *s);
    s->history = history;
    s->entries_of = calloc(history->names.device_count + 1, sizeof *s->entries_of);
    if (!s->entries_of || !read_all(&f)) return 0;
    join(&f);
    s->alive_count = kpti_memory_live_list(&history->live, &s->alive);
    s->end = (kpti_memory_level){0, 0};
    for (uint32_t i = 0; i < s->alive_count; i++)
        s->end.bytes += kpti_memory_block_size(kpti_memory_live_at(&history->live, s->alive[i]));
    s->end.blocks = s->alive_count;
    return 1;
}

void kpti_memory_survey_free(kpti_memory_survey *s)
{
    free(s->entries_of);
    free(s->regions);
    memset(s, 0, sizeof *s);
}

static const kpti_memory_block *alive_at(const kpti_memory_survey *s, uint32_t index)
{
    return kpti_memory_live_at(&s->history->live, s->alive[index]);
}

static const kpti_pool_tags *pool_of(const kpti_memory_survey *s, const kpti_memory_block *block)
{
    return &s->history->names.pools[kpti_memory_block_pool(block)];
}

static uint32_t space_of(const kpti_memory_survey *s, const kpti_memory_region *region)
{
    return s->history->names.devices[region->device].space;
}

uint32_t kpti_memory_region_first(const kpti_memory_survey *s, const kpti_memory_region *region)
{
    const uint32_t space = space_of(s, region);
    uint32_t low = 0;
    uint32_t high = s->alive_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        const kpti_memory_block *block = alive_at(s, middle);
        const uint32_t its = pool_of(s, block)->space;
        if (its < space || (its == space && block->address < region->begin))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const kpti_memory_block *kpti_memory_region_next(const kpti_memory_survey *s,
                                                 const kpti_memory_region *region, uint32_t *index)
{
    while (*index < s->alive_count) {
        const kpti_memory_block *block = alive_at(s, *index);
        const kpti_pool_tags *pool = pool_of(s, block);
        if (pool->space != space_of(s, region) || block->address >= region->end) return NULL;
        ++*index;
        if (pool->device == region->device) return block;
    }
    return NULL;
}
