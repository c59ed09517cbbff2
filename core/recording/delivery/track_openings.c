#include "core/recording/delivery/track_openings.h"

#include <stdlib.h>

#include "core/recording/replay/track_begin.h"

static int by_ticks(const void *a, const void *b)
{
    const kpti_track_opening *x = a;
    const kpti_track_opening *y = b;
    if (x->at.ticks != y->at.ticks) return x->at.ticks < y->at.ticks ? -1 : 1;
    return (x->track > y->track) - (x->track < y->track);
}

/* Converts the sorted ticks, block by block. */
static void to_ns(kpti_track_openings *o, const kpti_timebase *timebase)
{
    enum { BLOCK = 512 };
    uint64_t ticks[BLOCK];
    int64_t ns[BLOCK];
    for (uint32_t first = 0; first < o->count; first += BLOCK) {
        const uint32_t count = o->count - first < BLOCK ? o->count - first : BLOCK;
        for (uint32_t i = 0; i < count; i++) {
            ticks[i] = o->items[first + i].at.ticks;
            ns[i] = (int64_t)ticks[i];
        }
        if (timebase->convert) timebase->convert(timebase->convert_ctx, ticks, ns, count);
        for (uint32_t i = 0; i < count; i++)
            o->items[first + i].at.ns = ns[i];
    }
}

int kpti_track_openings_find(kpti_track_openings *o, const kpti_batcher *b)
{
    o->count = b->recording->track_count;
    o->items = kpti_alloc(b->env, o->count * sizeof *o->items);
    if (!o->items) return 0;
    for (uint32_t t = 0; t < o->count; t++) {
        o->items[t].at.ticks = kpti_track_begin(b->recording, t);
        o->items[t].track = t;
    }
    qsort(o->items, o->count, sizeof *o->items, by_ticks);
    to_ns(o, &b->timebase);
    /* A host's converter may return times that go backwards. A track may be opened too early, not too late. */
    for (uint32_t i = o->count; i-- > 1;)
        if (o->items[i].at.ns < o->items[i - 1].at.ns) o->items[i - 1].at.ns = o->items[i].at.ns;
    return 1;
}

void kpti_track_openings_free(kpti_track_openings *o, const kpti_batcher *b)
{
    kpti_free(b->env, o->items, o->count * sizeof *o->items);
}
