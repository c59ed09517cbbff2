#include "writers/flame/event_blocks.h"

#include <errno.h>

#include "core/base/assert.h"
#include "core/base/growable_array.h"

enum { MAX_BUFFERS = 4096 };

_Static_assert(offsetof(kpti_event_buffer, bytes) ==
                   offsetof(kpti_event_buffer, head) + sizeof(kpti_event_block),
               "a head and its events are stored at once");

static kpt_status check(kpti_event_blocks *b, int error)
{
    if (!error) return KPT_OK;
    if (error == ENOMEM) return KPT_E_MEMORY;
    b->os_error = error;
    return KPT_E_IO;
}

/* --- storing ---------------------------------------------------------------------------------- */

/* Moves the events of the buffer to the log. */
static kpt_status store(kpti_event_blocks *b, kpti_event_buffer *from)
{
    kpti_event_track *track = &b->tracks[from->thread];
    uint64_t place;
    kpt_status status;
    if (!from->head.size) return KPT_OK;
    from->head.before = track->last;
    status = check(
        b, kpti_spill_log_add(&b->log, &from->head, sizeof from->head + from->head.size, &place));
    if (status != KPT_OK) return status;
    track->last = place + 1;
    from->head.size = 0;
    return KPT_OK;
}

static void free_buffer(kpti_event_blocks *b, kpti_event_buffer *old)
{
    kpti_heap_give(&b->heap, old, sizeof *old + old->capacity);
}

/* Stores and frees the buffers of all tracks, or of those that have no open frames. */
static kpt_status store_all(kpti_event_blocks *b, int only_idle)
{
    uint32_t kept = 0;
    kpt_status status = KPT_OK;
    for (uint32_t i = 0; i < b->buffer_count; i++) {
        kpti_event_buffer *const buffer = b->buffers[i];
        const int is_kept = status != KPT_OK || (only_idle && buffer->depth);
        if (!is_kept) status = store(b, buffer);
        if (is_kept || status != KPT_OK) {
            buffer->index = kept;
            b->buffers[kept++] = buffer;
        } else {
            b->tracks[buffer->thread].buffer = NULL;
            free_buffer(b, buffer);
        }
    }
    b->buffer_count = kept;
    b->most_buffers = 2 * kept > MAX_BUFFERS ? 2 * kept : MAX_BUFFERS;
    return status;
}

/* Gives a track a buffer, which continues after its last block. */
static kpt_status add_buffer(kpti_event_blocks *b, uint32_t thread, int64_t ns)
{
    kpti_event_track *const track = &b->tracks[thread];
    kpt_status status = KPT_OK;
    kpti_event_buffer *added;
    if (!b->most_buffers) b->most_buffers = MAX_BUFFERS;
    if (b->buffer_count >= b->most_buffers) status = store_all(b, 1);
    if (status == KPT_OK)
        status = kpti_array_reach(&b->heap, &b->buffers, &b->buffer_capacity, b->buffer_count,
                                  sizeof(kpti_event_buffer *));
    if (status != KPT_OK) return status;
    added = kpti_heap_take(&b->heap, sizeof *added + KPTI_FIRST_BLOCK_BYTES);
    if (!added) return KPT_E_MEMORY;
    *added = (kpti_event_buffer){.thread = thread,
                                 .capacity = KPTI_FIRST_BLOCK_BYTES,
                                 .index = b->buffer_count,
                                 .head = {.start_ns = ns, .last_ns = ns}};
    if (track->last)
        status = check(
            b, kpti_spill_log_read(&b->log, track->last - 1, &added->head, sizeof added->head));
    added->head.size = 0;
    if (status == KPT_OK)
        b->buffers[b->buffer_count++] = track->buffer = added;
    else
        free_buffer(b, added);
    return status;
}

/* Makes the buffer of a track four times as large. */
static kpt_status enlarge(kpti_event_blocks *b, kpti_event_track *track)
{
    kpti_event_buffer *const old = track->buffer;
    kpti_event_buffer *larger =
        kpti_heap_take(&b->heap, sizeof *larger + (size_t)old->capacity * 4);
    if (!larger) return KPT_E_MEMORY;
    memcpy(larger, old, sizeof *old + old->head.size);
    larger->capacity = old->capacity * 4;
    b->buffers[old->index] = track->buffer = larger;
    free_buffer(b, old);
    return KPT_OK;
}

kpti_event_buffer *kpti_event_blocks_reserve_slow(kpti_event_blocks *b, uint32_t thread, int64_t ns,
                                                  uint32_t size, kpt_status *status)
{
    kpti_event_track *track;
    kpti_assert(size <= KPTI_FIRST_BLOCK_BYTES);
    *status = kpti_array_reach(&b->heap, &b->tracks, &b->track_capacity, thread, sizeof *b->tracks);
    if (*status != KPT_OK) return NULL;
    track = &b->tracks[thread];
    if (!track->buffer)
        *status = add_buffer(b, thread, ns);
    else if (track->buffer->capacity - track->buffer->head.size < size)
        *status = track->buffer->capacity < KPTI_MAX_BLOCK_BYTES ? enlarge(b, track)
                                                                 : store(b, track->buffer);
    return *status == KPT_OK ? track->buffer : NULL;
}

kpt_status kpti_event_blocks_finish(kpti_event_blocks *b)
{
    return store_all(b, 0);
}

/* --- reading ---------------------------------------------------------------------------------- */

kpt_status kpti_event_blocks_find(kpti_event_blocks *b, uint32_t thread, uint32_t *count,
                                  kpti_event_block *last)
{
    uint64_t next = thread < b->track_capacity ? b->tracks[thread].last : 0;
    kpti_event_block head;
    for (*count = 0; next; next = head.before) {
        kpt_status status =
            kpti_array_reach(&b->heap, &b->places, &b->place_capacity, *count, sizeof *b->places);
        if (status == KPT_OK)
            status = check(b, kpti_spill_log_read(&b->log, next - 1, &head, sizeof head));
        if (status != KPT_OK) return status;
        if (!*count) *last = head;
        b->places[(*count)++] = next - 1;
    }
    return KPT_OK;
}

kpt_status kpti_event_blocks_read(kpti_event_blocks *b, uint32_t count, uint32_t number,
                                  char *bytes, uint32_t *size)
{
    const uint64_t place = b->places[count - 1 - number];
    kpti_event_block head;
    kpt_status status = check(b, kpti_spill_log_read(&b->log, place, &head, sizeof head));
    kpti_assert(number < count);
    if (status != KPT_OK) return status;
    *size = head.size;
    return check(b, kpti_spill_log_read(&b->log, place + sizeof head, bytes, head.size));
}

void kpti_event_blocks_free(kpti_event_blocks *b)
{
    for (uint32_t i = 0; i < b->buffer_count; i++)
        free_buffer(b, b->buffers[i]);
    kpti_heap_give(&b->heap, b->buffers, b->buffer_capacity * sizeof(kpti_event_buffer *));
    kpti_heap_give(&b->heap, b->tracks, b->track_capacity * sizeof *b->tracks);
    kpti_heap_give(&b->heap, b->places, b->place_capacity * sizeof *b->places);
    kpti_spill_log_free(&b->log);
}
