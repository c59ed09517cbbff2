/* room.h: room for chunks: what a tracer may hold, and what a ring lets go of. "_locked": the session's
 * lock is held. */
#ifndef KPTI_ROOM_H
#define KPTI_ROOM_H

#include "tracer.h"

static inline size_t kpti_chunk_bytes(uint32_t capacity)
{
    return sizeof(kpti_chunk) + (size_t)capacity * sizeof(kpti_event);
}

void kpti_room_free_locked(kpti_tracer *tracer, kpti_chunk *chunk);

/* Whether old chunks may go, so that each must begin with the calls that are open. */
int kpti_room_is_ring(const kpti_tracer *tracer);

/* Whether a chunk of BYTES may be added; a ring makes room at the stream's own expense. While a
 * snapshot reads, a ring may become twice as large. */
int kpti_room_make_locked(kpti_stream *stream, size_t bytes, uint64_t now);

#endif
