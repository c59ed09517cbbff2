/* track_begin.c: see track_begin.h. It follows begin_chunk of replay_slow.c and the decoder of times. */
#include "core/recording/replay/track_begin.h"

#include "core/base/packed_words.h"
#include "core/recording/replay/timestamp_decoder.h"

/* Returns 0 if CHUNK has no event. */
static int first_event(const kpti_chunk *chunk, kpti_event *out)
{
    if (chunk->packed_bytes) return kpti_unpack_first_word(chunk->events, chunk->packed_bytes, out);
    if (!chunk->count) return 0;
    *out = chunk->events[0];
    return 1;
}

uint64_t kpti_chunk_first_ticks(const kpti_chunk *chunk)
{
    kpti_event event;
    uint32_t kind;
    if (chunk->sequence) return chunk->base_ticks; /* after a gap open calls begin with the chunk */
    if (!first_event(chunk, &event)) return 0;
    kind = kpti_event_kind(event);
    if (kind == KPTI_EVENT_OPEN || !kpti_times_is_plain(kind)) return 0;
    return (chunk->base_ticks & ~(uint64_t)UINT32_MAX) | (uint32_t)event;
}

uint64_t kpti_track_begin(const kpti_recording *recording, uint32_t track)
{
    kpti_chunk space;
    const kpti_chunk *chunk =
        kpti_recording_chunk(recording, kpti_recording_first_chunk(recording, track), &space);
    const kpti_run *run;
    uint64_t ticks;
    while (chunk && chunk->run >= recording->run_count)
        chunk = kpti_recording_chunk(recording, chunk->next, &space);
    if (!chunk) return recording->run_count ? recording->runs[0].start_ticks : 0;
    run = &recording->runs[chunk->run];
    ticks = recording->tracks ? kpti_chunk_first_ticks(chunk) : chunk->begun;
    if (ticks > run->stop_ticks) ticks = run->stop_ticks;
    return ticks > run->start_ticks ? ticks : run->start_ticks;
}
