#include "writers/memory/memory_history.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The live block at each address of a space: a hash table with open addressing and linear probes; removal moves
 * the following entries up. Invariant: at least half of the slots are empty. */
typedef struct live_table {
    uint64_t *slots; /* index + 1 of the ALLOC; 0: empty */
    uint64_t capacity;
    uint64_t used;
    const kpti_memory_entry *entries;
} live_table;

static uint64_t home_of(const live_table *t, const kpti_memory_entry *e)
{
    return ((e->address + e->space) * UINT64_C(0x9E3779B97F4A7C15) >> 20) & (t->capacity - 1);
}

static int same_place(const kpti_memory_entry *a, const kpti_memory_entry *b)
{
    return a->address == b->address && a->space == b->space;
}

/* Returns the slot of E's address, or the empty slot for it. */
static uint64_t slot_of(const live_table *t, const kpti_memory_entry *e)
{
    uint64_t i = home_of(t, e);
    while (t->slots[i] && !same_place(&t->entries[t->slots[i] - 1], e))
        i = (i + 1) & (t->capacity - 1);
    return i;
}

static int grow(live_table *t)
{
    const live_table old = *t;
    t->capacity = old.capacity ? old.capacity * 2 : 4096;
    t->slots = calloc(t->capacity, sizeof *t->slots);
    if (!t->slots) {
        *t = old;
        return 0;
    }
    for (uint64_t i = 0; i < old.capacity; i++)
        if (old.slots[i]) t->slots[slot_of(t, &t->entries[old.slots[i] - 1])] = old.slots[i];
    free(old.slots);
    return 1;
}

static void take_out(live_table *t, uint64_t hole)
{
    uint64_t i = hole;
    t->used--;
    for (;;) {
        uint64_t home;
        t->slots[hole] = 0;
        do {
            i = (i + 1) & (t->capacity - 1);
            if (!t->slots[i]) return;
            home = home_of(t, &t->entries[t->slots[i] - 1]);
            /* An entry stays if its probe sequence does not include the hole. */
        } while (((i - home) & (t->capacity - 1)) < ((i - hole) & (t->capacity - 1)));
        t->slots[hole] = t->slots[i];
        hole = i;
    }
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

static void end_live(kpti_memory_history *h, live_table *t, uint64_t slot, uint64_t by)
{
    kpti_memory_entry *alloc = &h->entries[t->slots[slot] - 1];
    h->entries[by].partner = (uint32_t)t->slots[slot];
    alloc->partner = (uint32_t)by + 1;
    h->end.bytes -= alloc->size;
    h->end.blocks--;
    h->end_weighed -= weighed(h, alloc);
    take_out(t, slot);
}

/* Finds the partners. If a block is allocated where another one is alive, the earlier block has ended: its free
 * was dropped. */
static int pair(kpti_memory_history *h)
{
    live_table t = {.entries = h->entries};
    for (uint64_t i = 0; i < h->count; i++) {
        kpti_memory_entry *e = &h->entries[i];
        uint64_t slot;
        if (t.used * 2 >= t.capacity && !grow(&t)) {
            free(t.slots);
            return 0;
        }
        slot = slot_of(&t, e);
        if (e->kind & KPTI_MEMORY_FREE) {
            if (!t.slots[slot]) {
                h->unseen_frees++;
                continue;
            }
            end_live(h, &t, slot, i);
            e->size = h->entries[e->partner - 1].size;
            e->pool = h->entries[e->partner - 1].pool;
            e->device = h->entries[e->partner - 1].device;
            continue;
        }
        if (t.slots[slot]) {
            end_live(h, &t, slot, i);
            e->partner = 0;
            slot = slot_of(&t, e);
        }
        t.slots[slot] = i + 1;
        t.used++;
        add_live(h, e, i + 1);
    }
    free(t.slots);
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
static void trim(kpti_memory_history *h, uint64_t most)
{
    const uint64_t gone = most && h->count > most ? h->count - most : 0;
    memmove(h->entries, h->entries + gone, (h->count - gone) * sizeof *h->entries);
    h->count -= gone;
    h->dropped += gone;
}

int kpti_memory_history_make(kpti_memory_history *h, kpti_memory_entry *entries, uint64_t count,
                             uint64_t dropped, uint64_t most, uint64_t sample_bytes)
{
    memset(h, 0, sizeof *h);
    h->sample_bytes = sample_bytes;
    h->entries = entries;
    h->count = count;
    h->dropped = dropped;
    if (count < UINT32_MAX) {
        if (count) qsort(entries, count, sizeof *entries, earlier);
        trim(h, most);
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
