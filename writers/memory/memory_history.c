#include "writers/memory/memory_history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/hash_table.h"

/* The live block at each address of a space. A slot is a uint64_t: the index + 1 of the ALLOC; 0: empty. */
static int is_used(const void *slot)
{
    return *(const uint64_t *)slot != 0;
}

static const kpti_memory_entry *entry_of(const void *slot, const void *entries)
{
    return (const kpti_memory_entry *)entries + *(const uint64_t *)slot - 1;
}

static int has_key(const void *slot, const void *key, const void *entries)
{
    const kpti_memory_entry *a = entry_of(slot, entries);
    const kpti_memory_entry *b = key;
    return a->address == b->address && a->space == b->space;
}

static uint64_t hash_of(const kpti_memory_entry *e)
{
    return kpti_hash_spread(e->address + e->space) >> 20;
}

static uint64_t hash(const void *slot, const void *entries)
{
    return hash_of(entry_of(slot, entries));
}

static const kpti_hash_slots slots = {sizeof(uint64_t), 4096, is_used, has_key, hash};

/* Returns the slot of E's address, or the empty slot for it. */
static uint64_t *slot_of(const kpti_hash_table *live, const kpti_memory_entry *e,
                         const kpti_memory_entry *entries)
{
    return kpti_hash_table_find(live, &slots, hash_of(e), e, entries);
}

/* Returns the bytes that E's block represents. */
static double weighed(const kpti_memory_history *h, const kpti_memory_entry *e)
{
    return (double)e->size * kpti_memory_weight(e->size, h->sample_bytes);
}

static void add_live(kpti_memory_history *h, const kpti_memory_entry *e, uint64_t after)
{
    h->end.bytes += e->size;
    h->end.blocks++;
    h->end_weighed += weighed(h, e);
    if (h->end.bytes > h->peak.bytes) h->peak = h->end;
    if (h->end_weighed <= h->peak_weighed) return;
    h->peak_weighed = h->end_weighed;
    h->peak_after = after;
}

static void end_live(kpti_memory_history *h, kpti_hash_table *live, uint64_t *slot, uint64_t by)
{
    kpti_memory_entry *alloc = &h->entries[*slot - 1];
    h->entries[by].partner = (uint32_t)*slot;
    alloc->partner = (uint32_t)by + 1;
    kpti_assert(alloc->kind & KPTI_MEMORY_ALLOC && h->end.blocks && h->end.bytes >= alloc->size);
    h->end.bytes -= alloc->size;
    h->end.blocks--;
    h->end_weighed -= weighed(h, alloc);
    kpti_hash_table_remove(live, &slots, slot, h->entries);
}

/* Finds the partners. If a block is allocated where another one is alive, the earlier block has ended: its free
 * was dropped. */
static int pair(kpti_memory_history *h)
{
    kpti_hash_table live = {0};
    for (uint64_t i = 0; i < h->count; i++) {
        kpti_memory_entry *e = &h->entries[i];
        uint64_t *slot;
        if (!kpti_hash_table_reserve(&live, &slots, &kpti_malloc_heap, h->entries)) {
            kpti_hash_table_free(&live, &slots, &kpti_malloc_heap);
            return 0;
        }
        slot = slot_of(&live, e, h->entries);
        if (e->kind & KPTI_MEMORY_FREE) {
            if (!*slot) {
                h->unseen_frees++;
                continue;
            }
            end_live(h, &live, slot, i);
            e->size = h->entries[e->partner - 1].size;
            e->pool = h->entries[e->partner - 1].pool;
            e->device = h->entries[e->partner - 1].device;
            continue;
        }
        if (*slot) {
            end_live(h, &live, slot, i);
            e->partner = 0;
            slot = slot_of(&live, e, h->entries);
        }
        *slot = i + 1;
        live.count++;
        add_live(h, e, i + 1);
    }
    kpti_hash_table_free(&live, &slots, &kpti_malloc_heap);
    return 1;
}

/* Entries with equal times keep their input order. */
static int earlier(const void *a, const void *b)
{
    const kpti_memory_entry *x = a;
    const kpti_memory_entry *y = b;
    if (x->time_ns != y->time_ns) return x->time_ns < y->time_ns ? -1 : 1;
    return x->partner < y->partner ? -1 : x->partner > y->partner;
}

static int by_place(const void *a, const void *b, void *entries)
{
    const kpti_memory_entry *x = (const kpti_memory_entry *)entries + *(const uint32_t *)a;
    const kpti_memory_entry *y = (const kpti_memory_entry *)entries + *(const uint32_t *)b;
    if (x->space != y->space) return x->space < y->space ? -1 : 1;
    return x->address < y->address ? -1 : x->address > y->address;
}

/* Returns whether A, which begins before B, overlaps it. */
static int reaches(const kpti_memory_entry *a, const kpti_memory_entry *b)
{
    return a->space == b->space && a->address + a->size > b->address;
}

/* Records that the block of entry OLD had ended when that of entry NEW was allocated. */
static void end_lost(kpti_memory_history *h, uint32_t old, uint32_t new)
{
    kpti_assert(old < new && !h->entries[old].partner && h->end.blocks);
    h->entries[old].partner = new + 1;
    h->end.bytes -= h->entries[old].size;
    h->end.blocks--;
}

/* Of overlapping blocks only the newest is alive: frees were lost, with a chunk or while no tracer recorded. */
static int end_overlapped(kpti_memory_history *h)
{
    uint32_t *live = malloc((h->end.blocks + 1) * sizeof *live);
    uint64_t count = 0;
    uint64_t kept = 0;
    if (!live) return 0;
    for (uint64_t i = 0; i < h->count; i++)
        if (kpti_memory_was_alive(h, i, h->count)) live[count++] = (uint32_t)i;
    if (count) qsort_r(live, count, sizeof *live, by_place, h->entries);
    for (uint64_t i = 0; i < count;
         i++) { /* kept blocks do not overlap, and end at the end of the last one */
        int lost = 0;
        while (kept && !lost && reaches(&h->entries[live[kept - 1]], &h->entries[live[i]])) {
            lost = live[kept - 1] > live[i];
            if (lost)
                end_lost(h, live[i], live[kept - 1]);
            else
                end_lost(h, live[--kept], live[i]);
        }
        if (!lost) live[kept++] = live[i];
    }
    free(live);
    return 1;
}

/* Keeps only the last MAX entries. */
static void trim(kpti_memory_history *h, uint64_t max)
{
    const uint64_t gone = max && h->count > max ? h->count - max : 0;
    memmove(h->entries, h->entries + gone, (h->count - gone) * sizeof *h->entries);
    h->count -= gone;
    h->dropped += gone;
}

int kpti_memory_history_make(kpti_memory_history *h, kpti_memory_entry *entries, uint64_t count,
                             uint64_t dropped, uint64_t max, uint64_t sample_bytes)
{
    memset(h, 0, sizeof *h);
    h->sample_bytes = sample_bytes;
    h->entries = entries;
    h->count = count;
    h->dropped = dropped;
    if (count < UINT32_MAX) {
        if (count) qsort(entries, count, sizeof *entries, earlier);
        trim(h, max);
        for (uint64_t i = 0; i < h->count; i++)
            entries[i].partner = 0;
        if (pair(h) && end_overlapped(h)) return 1;
    }
    kpti_memory_history_free(h);
    return 0;
}

void kpti_memory_history_free(kpti_memory_history *h)
{
    free(h->entries);
    memset(h, 0, sizeof *h);
}

int kpti_memory_was_alive(const kpti_memory_history *h, uint64_t i, uint64_t count)
{
    const kpti_memory_entry *e = &h->entries[i];
    if (i >= count || !(e->kind & KPTI_MEMORY_ALLOC)) return 0;
    return !e->partner || e->partner > count;
}

/* Returns the bytes by which an entry changes a curve. It is 0 for the free of a block from before the
 * recording, which was never added, and for a block whose free was lost, which would never be subtracted. */
static uint64_t counted(const kpti_memory_history *h, const kpti_memory_entry *e)
{
    if (e->kind & KPTI_MEMORY_FREE) return e->partner ? e->size : 0;
    return e->partner && h->entries[e->partner - 1].kind & KPTI_MEMORY_ALLOC ? 0 : e->size;
}

int kpti_memory_curves_make(kpti_memory_curves *curves, uint32_t devices)
{
    curves->of_device = calloc((size_t)devices * 2, sizeof *curves->of_device);
    if (!curves->of_device) return 0;
    curves->of_space = curves->of_device + devices;
    return 1;
}

void kpti_memory_curves_free(kpti_memory_curves *curves)
{
    free(curves->of_device);
}

void kpti_memory_curves_take(kpti_memory_curves *curves, const kpti_memory_history *history,
                             const kpti_memory_entry *entry)
{
    const uint64_t bytes = counted(history, entry);
    const uint64_t change = entry->kind & KPTI_MEMORY_ALLOC ? bytes : 0 - bytes;
    curves->of_device[entry->device] += change;
    curves->of_space[entry->space] += change;
}

double kpti_memory_weight(uint64_t size, uint64_t mean)
{
    return mean && size ? 1 / -expm1(-(double)size / (double)mean) : 1;
}
