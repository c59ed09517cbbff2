/* events_fuzz.c: bytes as chunks of events, word by word as they are, the way a damaged file would bring
 * them: what decodes events (replay and times, there is no step before them) sees every bit pattern.
 *
 * An input is a wish, two runs of 16 bytes, then chunks: 12 bytes of head, of which one says how many
 * words follow and the rest is any run, sequence, gap and counter. */
#include <stdlib.h>
#include <string.h>

#include "tests/native/fuzz/delivering.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { THREADS = 2, RUNS = 2 };

/* The memory ends with the last event, so that a read behind it is seen. */
static kpti_chunk *take_chunk(input *in, uint32_t *thread)
{
    const size_t wanted = take(in, 1);
    const uint32_t choice = (uint32_t)take(in, 1);
    const uint32_t sequence = (uint32_t)take(in, 1);
    const uint64_t dropped_before = take(in, 1);
    const uint64_t base_ticks = take(in, 8);
    const size_t left = (size_t)(in->end - in->at) / sizeof(kpti_event);
    const size_t count = wanted < left ? wanted : left;
    kpti_chunk *chunk = malloc(sizeof *chunk + count * sizeof(kpti_event));
    if (!chunk) abort();
    *chunk = (kpti_chunk){.base_ticks = base_ticks,
                          .dropped_before = dropped_before,
                          .run = choice >> 1 & 3,
                          .sequence = sequence,
                          .capacity = (uint32_t)count,
                          .count = (uint32_t)count,
                          .events = (kpti_event *)(chunk + 1)};
    for (size_t i = 0; i < count; i++)
        chunk->events[i] = take(in, sizeof(kpti_event));
    *thread = choice & 1;
    return chunk;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, data + size};
    const wish w = take_wish(&in);
    kpti_run runs[RUNS];
    kpti_chunk *first[THREADS] = {NULL};
    kpti_chunk *last[THREADS] = {NULL};
    kpti_track tracks[THREADS];
    memset(tracks, 0, sizeof tracks);
    for (int i = 0; i < RUNS; i++) {
        runs[i].start_ticks = take(&in, 8);
        runs[i].stop_ticks = take(&in, 8);
    }
    while (in.at < in.end) {
        uint32_t t;
        kpti_chunk *chunk = take_chunk(&in, &t);
        *(last[t] ? &last[t]->next : &first[t]) = chunk;
        last[t] = chunk;
    }
    for (int t = 0; t < THREADS; t++)
        tracks[t] = (kpti_track){.chunks = first[t], .spans = (uint32_t)t};
    deliver_all(
        (kpti_recording){.tracks = tracks, .track_count = THREADS, .runs = runs, .run_count = RUNS},
        w);
    for (int t = 0; t < THREADS; t++)
        free_chunks(first[t]);
    return 0;
}
