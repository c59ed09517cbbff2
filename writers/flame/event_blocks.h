/* event_blocks.h: the events of many tracks, which are added in any order, and read track by track. A track collects its
 * events in a buffer; from there they go as a block to a log that spills into a file. Where there are many buffers, those
 * of tracks without open frames are stored, most of which have ended. So memory grows with the tracks that are open at one
 * time, and by 16 bytes for each track.
 *
 * The user encodes the events. One thread at a time; no GIL. */
#ifndef KPTI_WRITERS_FLAME_EVENT_BLOCKS_H
#define KPTI_WRITERS_FLAME_EVENT_BLOCKS_H

#include "writers/io/spill_log.h"

#ifdef __cplusplus
extern "C" {
#endif

/* There may be many tracks, most of them short, so buffers start small. */
enum { KPTI_FIRST_BLOCK_BYTES = 256, KPTI_MAX_BLOCK_BYTES = 64 * 1024 };

/* Stands in the log in front of its events. */
typedef struct kpti_event_block {
    uint64_t before;     /* place + 1 of the track's block before it, or 0 */
    int64_t start_ns;    /* of the track's first event */
    int64_t last_ns;     /* of its last event so far */
    uint32_t most_depth; /* of its frames so far */
    uint32_t size;       /* of the events */
} kpti_event_block;

/* The events of a track that are not in the log. The user writes them behind the first `size`, and the fields of head. */
typedef struct kpti_event_buffer {
    uint32_t thread;
    uint32_t depth; /* open frames; the user's */
    uint32_t capacity;
    uint32_t index; /* among all buffers */
    kpti_event_block head;
    char bytes[];
} kpti_event_buffer;

typedef struct kpti_event_track {
    kpti_event_buffer *buffer; /* NULL: all its events are in the log */
    uint64_t last;             /* place + 1 of its last block, or 0 */
} kpti_event_track;

/* Zeroed at first, except for the heap and what the log needs. */
typedef struct kpti_event_blocks {
    kpti_heap heap;
    kpti_spill_log log;
    kpti_event_track *tracks;
    uint32_t track_capacity;
    kpti_event_buffer **buffers;
    uint32_t buffer_capacity;
    uint32_t buffer_count;
    uint32_t most_buffers; /* count at which those of idle tracks are stored */
    uint64_t *places;      /* of the blocks of the track that is read, the last first */
    uint32_t place_capacity;
    int os_error; /* after KPT_E_IO */
} kpti_event_blocks;

/* Functions that return a status return KPT_OK, KPT_E_MEMORY, KPT_E_LIMIT or KPT_E_IO. */

/* Returns the buffer of THREAD, or NULL. A track with open frames has one. */
static inline kpti_event_buffer *kpti_event_blocks_buffer(const kpti_event_blocks *blocks,
                                                          uint32_t thread)
{
    return thread < blocks->track_capacity ? blocks->tracks[thread].buffer : NULL;
}

/* The slow path of kpti_event_blocks_reserve. */
kpti_event_buffer *kpti_event_blocks_reserve_slow(kpti_event_blocks *blocks, uint32_t thread,
                                                  int64_t ns, uint32_t size, kpt_status *status);

/* Returns the buffer of THREAD, with space for SIZE more bytes, or NULL, with the reason in *STATUS. NS is the time of a
 * first event. */
static inline kpti_event_buffer *kpti_event_blocks_reserve(kpti_event_blocks *blocks,
                                                           uint32_t thread, int64_t ns,
                                                           uint32_t size, kpt_status *status)
{
    kpti_event_buffer *const buffer = kpti_event_blocks_buffer(blocks, thread);
    if (!buffer || buffer->capacity - buffer->head.size < size)
        return kpti_event_blocks_reserve_slow(blocks, thread, ns, size, status);
    *status = KPT_OK;
    return buffer;
}

/* After the last event: stores all buffers. */
kpt_status kpti_event_blocks_finish(kpti_event_blocks *blocks);

/* Then finds the blocks of THREAD. Sets *COUNT, 0 if it has none, and *LAST, the last block's head. */
kpt_status kpti_event_blocks_find(kpti_event_blocks *blocks, uint32_t thread, uint32_t *count,
                                  kpti_event_block *last);

/* Reads block NUMBER of those that were found, from 0. BYTES has space for KPTI_MAX_BLOCK_BYTES. */
kpt_status kpti_event_blocks_read(kpti_event_blocks *blocks, uint32_t count, uint32_t number,
                                  char *bytes, uint32_t *size);

void kpti_event_blocks_free(kpti_event_blocks *blocks);

#ifdef __cplusplus
}
#endif
#endif
