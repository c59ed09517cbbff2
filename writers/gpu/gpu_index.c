#include "writers/gpu/gpu_index.h"

/* State of a correlation number. */
enum { IS_CALLED = 1 << 0, IS_STARTED = 1 << 1, IS_DRAWN = 1 << 2 };

static int is_of_device(const kpt_gpu_event *event)
{
    return kpti_gpu_is_work(event->kind) || event->kind == KPT_GPU_SYNC;
}

/* A wait for a context has no device. */
static kpti_gpu_track place_of(const kpt_gpu_event *event)
{
    return (kpti_gpu_track){event->device == KPT_GPU_NONE ? 0 : event->device, event->stream};
}

static uint64_t key_of(kpti_gpu_track place)
{
    return (uint64_t)place.device << 32 | place.stream;
}

uint32_t kpti_gpu_track_of(kpti_gpu_index *index, const kpt_gpu_event *event)
{
    const uint32_t *number;
    if (!is_of_device(event)) return UINT32_MAX;
    number = kpti_u64_map_at(&index->track_numbers, key_of(place_of(event)));
    return number ? *number - 1 : UINT32_MAX;
}

static kpt_status add_track(kpti_gpu_index *index, const kpt_gpu_event *event)
{
    uint32_t *number = kpti_u64_map_at(&index->track_numbers, key_of(place_of(event)));
    kpt_status status;
    if (!number) return KPT_E_MEMORY;
    if (*number) return KPT_OK;
    status = kpti_array_reach(&index->heap, &index->tracks, &index->track_capacity,
                              index->track_count, sizeof *index->tracks);
    if (status != KPT_OK) return status;
    index->tracks[index->track_count] = place_of(event);
    *number = ++index->track_count;
    return KPT_OK;
}

static kpt_status add_link(kpti_gpu_index *index, const kpt_gpu_event *event)
{
    uint32_t *known;
    if (!event->correlation || event->correlation == UINT64_MAX) return KPT_OK;
    known = kpti_u64_map_at(&index->links, event->correlation);
    if (!known) return KPT_E_MEMORY;
    *known |= kpti_gpu_is_call(event->kind) ? IS_CALLED : IS_STARTED;
    return KPT_OK;
}

kpt_status kpti_gpu_index_make(kpti_gpu_index *index, const kpti_gpu_log *log)
{
    kpti_gpu_cursor cursor = {.log = log};
    const kpti_gpu_entry *e;
    kpt_status status = KPT_OK;
    index->track_numbers.heap = index->links.heap = index->heap;
    while (status == KPT_OK && (e = kpti_gpu_next(&cursor))) {
        if (is_of_device(&e->event)) status = add_track(index, &e->event);
        if (status == KPT_OK &&
            (kpti_gpu_is_work(e->event.kind) || kpti_gpu_is_call(e->event.kind)))
            status = add_link(index, &e->event);
    }
    return status;
}

void kpti_gpu_index_free(kpti_gpu_index *index)
{
    kpti_u64_map_free(&index->track_numbers);
    kpti_u64_map_free(&index->links);
    kpti_heap_give(&index->heap, index->tracks, index->track_capacity * sizeof *index->tracks);
    index->tracks = NULL;
    index->track_capacity = index->track_count = 0;
}

/* Returns the state of an event's correlation number, added by kpti_gpu_index_make, or NULL if the event has
 * none. */
static uint32_t *known_of(kpti_gpu_index *index, const kpt_gpu_event *event)
{
    if (!event->correlation || event->correlation == UINT64_MAX) return NULL;
    return kpti_u64_map_at(&index->links, event->correlation);
}

int kpti_gpu_arrow_leaves(kpti_gpu_index *index, const kpt_gpu_event *event)
{
    uint32_t *known = kpti_gpu_is_call(event->kind) ? known_of(index, event) : NULL;
    if (!known || !(*known & IS_STARTED) || *known & IS_DRAWN) return 0;
    *known |= IS_DRAWN;
    return 1;
}

int kpti_gpu_arrow_comes(kpti_gpu_index *index, const kpt_gpu_event *event)
{
    const uint32_t *known = kpti_gpu_is_work(event->kind) ? known_of(index, event) : NULL;
    return known && *known & IS_CALLED;
}
