#include "writers/memory/memory_segments.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/growable_array.h"

enum { MEGABYTE_BITS = 20 };

static int by_begin(const void *a, const void *b)
{
    const kpti_memory_segment *x = a;
    const kpti_memory_segment *y = b;
    return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* A cache of regions that were added recently: a block is mostly in a region that was just added. */
enum { RECENT = 256 };

typedef struct finder {
    kpti_memory_segments *out;
    uint64_t capacity;
    uint64_t recent[RECENT]; /* megabyte + 1 */
} finder;

static int add_region(finder *f, uint64_t begin, uint64_t end)
{
    const uint64_t megabyte = begin >> MEGABYTE_BITS;
    kpti_memory_segments *s = f->out;
    uint64_t *recent = &f->recent[megabyte % RECENT];
    if (*recent == megabyte + 1 && (end - 1) >> MEGABYTE_BITS == megabyte) return 1;
    *recent = megabyte + 1;
    if (!kpti_array_reserve(&kpti_malloc_heap, &s->segments, &f->capacity, s->segment_count + 1,
                            sizeof *s->segments))
        return 0;
    s->segments[s->segment_count++] = (kpti_memory_segment){
        megabyte << MEGABYTE_BITS, (((end - 1) >> MEGABYTE_BITS) + 1) << MEGABYTE_BITS, 0, 0, 0};
    return 1;
}

/* Joins adjacent and overlapping segments. */
static void join(kpti_memory_segments *s)
{
    uint64_t kept = 0;
    if (s->segment_count) qsort(s->segments, s->segment_count, sizeof *s->segments, by_begin);
    for (uint64_t i = 0; i < s->segment_count; i++) {
        kpti_memory_segment *last = kept ? &s->segments[kept - 1] : NULL;
        if (last && s->segments[i].begin <= last->end) {
            if (s->segments[i].end > last->end) last->end = s->segments[i].end;
        } else {
            s->segments[kept++] = s->segments[i];
        }
    }
    s->segment_count = kept;
}

static int by_address(const void *a, const void *b, void *entries)
{
    const kpti_memory_entry *all = entries;
    const uint64_t x = all[*(const uint32_t *)a].address;
    const uint64_t y = all[*(const uint32_t *)b].address;
    return x < y ? -1 : x > y;
}

/* Assigns the blocks, sorted by address, to the segments. */
static void share_out(kpti_memory_segments *s, const kpti_memory_history *h)
{
    uint64_t block = 0;
    for (uint64_t i = 0; i < s->segment_count; i++) {
        kpti_memory_segment *segment = &s->segments[i];
        segment->first = block;
        while (block < s->block_count && h->entries[s->blocks[block]].address < segment->end)
            segment->allocated += h->entries[s->blocks[block++]].size;
        segment->count = block - segment->first;
    }
}

int kpti_memory_segments_find(kpti_memory_segments *out, const kpti_memory_history *h,
                              uint32_t device)
{
    finder f = {.out = out};
    memset(out, 0, sizeof *out);
    out->blocks = malloc((h->end.blocks + 1) * sizeof *out->blocks);
    if (!out->blocks) return 0;
    for (uint64_t i = 0; i < h->count; i++) {
        const kpti_memory_entry *e = &h->entries[i];
        if (e->device != device) continue;
        if (!add_region(&f, e->address, e->address + (e->size ? e->size : 1))) {
            kpti_memory_segments_free(out);
            return 0;
        }
        if (kpti_memory_was_alive(h, i, h->count)) out->blocks[out->block_count++] = (uint32_t)i;
    }
    join(out);
    if (out->block_count)
        qsort_r(out->blocks, out->block_count, sizeof *out->blocks, by_address, h->entries);
    share_out(out, h);
    return 1;
}

void kpti_memory_segments_free(kpti_memory_segments *s)
{
    free(s->segments);
    free(s->blocks);
    memset(s, 0, sizeof *s);
}
