#include "imports/import_tracks.h"

#include "core/base/hash.h"

static const int64_t not_ended = INT64_MIN;

uint64_t kpti_import_track_key(kpt_str pid, kpt_str tid)
{
    return kpti_hash_mix(kpti_text_key(pid), kpti_text_key(tid)) >> 1;
}

kpti_import_track *kpti_import_track_at(kpti_import_tracks *tracks, kpt_str pid, kpt_str tid)
{
    uint32_t *number = kpti_u64_map_at(&tracks->numbers, kpti_import_track_key(pid, tid));
    if (!number) return NULL;
    if (!*number) {
        if (tracks->count >= KPTI_MAX_ITEMS ||
            !kpti_array_reserve(&kpti_malloc_heap, &tracks->items, &tracks->capacity,
                                (uint64_t)tracks->count + 1, sizeof *tracks->items))
            return NULL;
        *number = ++tracks->count;
    }
    return &tracks->items[*number - 1];
}

/* --- adding ----------------------------------------------------------------------------------- */

static void widen(kpti_import_tracks *tracks, int64_t start_ns, int64_t end_ns)
{
    if (!tracks->calls || start_ns < tracks->first_ns) tracks->first_ns = start_ns;
    if (!tracks->calls || end_ns > tracks->last_ns) tracks->last_ns = end_ns;
}

/* Returns 1 if a call contains OTHER, -1 if OTHER contains it, 0 if neither or both. */
static int contains(int64_t start_ns, int64_t end_ns, const kpti_import_call *other)
{
    return (start_ns <= other->start_ns && other->end_ns <= end_ns) -
           (other->start_ns <= start_ns && end_ns <= other->end_ns);
}

static kpti_import_call *add(kpti_import_tracks *tracks, kpti_import_track *track, int64_t start_ns,
                             int64_t end_ns, uint32_t name)
{
    kpti_import_call *call;
    if (track->count >= KPTI_MAX_ITEMS ||
        !kpti_array_reserve(&kpti_malloc_heap, &track->calls, &track->capacity, track->count + 1,
                            sizeof *call))
        return NULL;
    widen(tracks, start_ns, end_ns == not_ended ? start_ns : end_ns);
    call = &track->calls[track->count];
    if (track->count) track->callers_last += contains(start_ns, end_ns, &call[-1]);
    *call = (kpti_import_call){start_ns, end_ns, name, (uint32_t)track->count};
    track->count++;
    tracks->calls++;
    return call;
}

int kpti_import_add_call(kpti_import_tracks *tracks, kpti_import_track *track, int64_t start_ns,
                         int64_t duration_ns, uint32_t name)
{
    return add(tracks, track, start_ns, start_ns + duration_ns, name) != NULL;
}

/* A point differs from a call by its end, which is before its start. */
int kpti_import_add_point(kpti_import_tracks *tracks, kpti_import_track *track, int64_t ns,
                          uint32_t note)
{
    kpti_import_call *call = add(tracks, track, ns, ns, note);
    if (call) call->end_ns = ns - 1;
    return call != NULL;
}

int kpti_import_begin_call(kpti_import_tracks *tracks, kpti_import_track *track, int64_t ns,
                           uint32_t name)
{
    if (!kpti_array_reserve(&kpti_malloc_heap, &track->open, &track->open_capacity,
                            track->open_count + 1, sizeof *track->open) ||
        !add(tracks, track, ns, not_ended, name))
        return 0;
    track->open[track->open_count++] = (uint32_t)(track->count - 1);
    return 1;
}

int kpti_import_end_call(kpti_import_tracks *tracks, kpti_import_track *track, int64_t ns)
{
    kpti_import_call *call;
    if (!track->open_count) return 0;
    call = &track->calls[track->open[--track->open_count]];
    call->end_ns = ns > call->start_ns ? ns : call->start_ns;
    widen(tracks, call->start_ns, call->end_ns);
    return 1;
}

/* --- nesting ---------------------------------------------------------------------------------- */

static int is_point(const kpti_import_call *call)
{
    return call->end_ns < call->start_ns;
}

/* By start, then callers first; of equal calls the one with the lower order. */
static int by_start(const void *a, const void *b)
{
    const kpti_import_call *x = a;
    const kpti_import_call *y = b;
    if (x->start_ns != y->start_ns) return x->start_ns < y->start_ns ? -1 : 1;
    if (x->end_ns != y->end_ns) return x->end_ns > y->end_ns ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static void sort(kpti_import_track *track)
{
    for (uint64_t i = 0; track->callers_last > 0 && i < track->count; i++)
        track->calls[i].order = (uint32_t)(track->count - 1 - i);
    for (uint64_t i = 1; i < track->count; i++) {
        if (by_start(&track->calls[i - 1], &track->calls[i]) < 0) continue;
        qsort(track->calls, (size_t)track->count, sizeof *track->calls, by_start);
        return;
    }
}

/* The ends of the calls that are open in a lane, outermost first. */
typedef struct lane {
    int64_t *ends;
    uint64_t capacity;
    uint64_t count;
} lane;

/* Puts CALL into LANE if it nests there, or if MUST is set. Returns 1, 0 if it does not nest, or -1 if there is no
 * memory. */
static int place(lane *l, kpti_import_call *call, int must)
{
    while (l->count && l->ends[l->count - 1] <= call->start_ns)
        l->count--;
    if (l->count && call->end_ns > l->ends[l->count - 1]) {
        const int64_t end_ns = l->ends[l->count - 1];
        if (!must && call->end_ns - end_ns > KPTI_IMPORT_ROUNDING_NS) return 0;
        call->end_ns = end_ns;
    }
    if (!kpti_array_reserve(&kpti_malloc_heap, &l->ends, &l->capacity, l->count + 1,
                            sizeof *l->ends))
        return -1;
    l->ends[l->count++] = call->end_ns;
    return 1;
}

static int place_in_any(lane *lanes, kpti_import_track *track, kpti_import_call *call)
{
    int placed = 0;
    for (uint32_t i = 0; !placed; i++) {
        placed = place(&lanes[i], call, i == KPTI_IMPORT_MAX_LANES - 1);
        if (placed <= 0) continue;
        call->order = i;
        if (i >= track->lanes) track->lanes = i + 1;
    }
    return placed > 0;
}

int kpti_import_nest(const kpti_import_tracks *tracks, kpti_import_track *track)
{
    lane lanes[KPTI_IMPORT_MAX_LANES] = {{NULL, 0, 0}};
    int fine = 1;
    for (uint64_t i = 0; i < track->count; i++)
        if (track->calls[i].end_ns == not_ended) track->calls[i].end_ns = tracks->last_ns;
    sort(track);
    track->lanes = 1;
    for (uint64_t i = 0; fine && i < track->count; i++) {
        kpti_import_call *call = &track->calls[i];
        if (is_point(call))
            call->order = (uint32_t)KPTI_IMPORT_POINT;
        else
            fine = place_in_any(lanes, track, call);
    }
    for (int i = 0; i < KPTI_IMPORT_MAX_LANES; i++)
        kpti_heap_give(&kpti_malloc_heap, lanes[i].ends,
                       (size_t)lanes[i].capacity * sizeof *lanes[i].ends);
    return fine;
}

void kpti_import_tracks_free(kpti_import_tracks *tracks)
{
    for (uint32_t i = 0; i < tracks->count; i++) {
        const kpti_import_track *track = &tracks->items[i];
        kpti_heap_give(&kpti_malloc_heap, track->calls,
                       (size_t)track->capacity * sizeof *track->calls);
        kpti_heap_give(&kpti_malloc_heap, track->open,
                       (size_t)track->open_capacity * sizeof *track->open);
    }
    kpti_heap_give(&kpti_malloc_heap, tracks->items,
                   (size_t)tracks->capacity * sizeof *tracks->items);
    kpti_u64_map_free(&tracks->numbers);
    memset(tracks, 0, sizeof *tracks);
}
