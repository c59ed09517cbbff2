/* recording.h: what a tracer holds, as replay reads it: a list of chunks of events per thread.
 *
 * A recording consists of runs. make begins the first run, and each restart another. All chunks of a run carry
 * its number. Within a run, a thread's chunks are numbered from 0; a gap in the numbers is a chunk that a ring
 * dropped.
 *
 * Invariants:
 *   a chunk's events begin with its OPEN events (and their LINEs), outermost first: the Python calls of the
 *   thread that were open there. The first chunk of a run always has them. Later chunks have them only if
 *   chunks may be dropped or passed to a sink. They are redundant if the previous chunk is present.
 *   the low half of the first event continues base_ticks. A thread's ticks never go backwards by more than
 *   the difference between the counters of two processors. */
#ifndef KPTI_CORE_RECORDING_RECORDING_H
#define KPTI_CORE_RECORDING_RECORDING_H

#include <stddef.h>

#include "abi/kpt_activity.h"
#include "core/base/assert.h"
#include "core/recording/event.h"

typedef struct kpti_chunk {
    struct kpti_chunk *next; /* the next chunk of the same thread */
    /* the whole counter when the chunk was begun, of the host's clock if it has one */
    uint64_t base_ticks;
    uint64_t
        begun; /* kpti_ticks at that time; for rings. Read from an index: kpti_chunk_first_ticks */
    uint64_t dropped_before; /* events lost between the previous chunk and this one */
    uint32_t run;
    uint32_t sequence; /* within run and thread */
    uint32_t capacity; /* in events */
    uint32_t count;    /* events written */
    /* how many of the first events repeat open calls: OPEN events and their details */
    uint32_t repeated;
    uint32_t
        packed_bytes; /* not 0: a loaded chunk, whose events are so many packed bytes (packed_words.h) */
    kpti_event *events; /* follow the chunk in memory, or are borrowed by a loader */
} kpti_chunk;

/* Whether a chunk that a recorder has written and sealed is consistent. */
static inline int kpti_chunk_is_valid(const kpti_chunk *chunk)
{
    return chunk->count <= chunk->capacity && chunk->repeated <= chunk->count;
}

/* Whether LAST, or NULL for an empty list, ends the list from FIRST on, and the runs are in order. */
static inline int kpti_chunks_are_linked(const kpti_chunk *first, const kpti_chunk *last)
{
    for (; first && first->next; first = first->next)
        if (first->next->run < first->run) return 0;
    return first == last;
}

/* Returns how many events of a sealed chunk are in no earlier chunk. So many are recorded by it, or lost with
 * it. */
static inline uint32_t kpti_chunk_own_events(const kpti_chunk *chunk)
{
    return chunk->count > chunk->repeated ? chunk->count - chunk->repeated : 0;
}

/* One thread's part of a recording. */
typedef struct kpti_track {
    const kpti_chunk *chunks; /* the first chunk, or NULL */
    uint64_t os_tid;
    uint64_t host_value;
    kpt_str name;
    uint32_t flags; /* KPT_THREAD_* */
    uint32_t spans; /* not 0: the events contain spans of the host */
} kpti_track;

/* The end of a host's span on another thread than that of its begin. */
typedef struct kpti_cross_thread_end {
    uint64_t ticks;
    uint32_t number; /* the span's number */
    uint32_t spare;
} kpti_cross_thread_end;

typedef struct kpti_run {
    uint64_t start_ticks;
    uint64_t stop_ticks; /* end of the run; for a snapshot of a running tracer, the current time */
} kpti_run;

/* A function as replay sees it. Function ids are indices; id 0 is a function that could not be named. */
typedef struct kpti_function_view {
    kpt_str display;
    kpt_str function;
    kpt_str qualname;
    kpt_str file;
    uint32_t first_line;
    uint32_t kind;  /* KPT_KIND_PYTHON, KPT_KIND_C or KPT_KIND_OPERATOR */
    uint32_t scope; /* of an operator */
} kpti_function_view;

/* Fills OUT for ID. Returns 0 if there is no such function. Any thread, no GIL. */
typedef int (*kpti_describe_fn)(void *ctx, uint32_t id, kpti_function_view *out);

/* Reads tracks and chunks of a recording that has an index instead of structs. The addresses of chunks in tracks and
 * chunks are places in the index, which only read_chunk reads. */
typedef struct kpti_recording_index {
    const void *ctx;
    void (*read_track)(const void *ctx, uint32_t track, kpti_track *out);
    const kpti_chunk *(*first_chunk)(const void *ctx, uint32_t track); /* of the track, or NULL */
    void (*read_chunk)(const void *ctx, const kpti_chunk *place, kpti_chunk *out);
} kpti_recording_index;

typedef struct kpti_recording {
    const kpti_track *tracks; /* NULL: they are in the index */
    uint32_t track_count;
    const kpti_run *runs;
    uint32_t run_count;
    uint32_t function_count; /* all ids are below it */
    kpti_describe_fn describe;
    void *describe_ctx;
    uint64_t min_duration_ns; /* shorter calls and their callees are not delivered */
    const kpti_cross_thread_end *cross_thread_ends; /* in the order of ticks */
    uint64_t remote_end_count;
    kpti_recording_index index;
} kpti_recording;

static inline kpti_track kpti_recording_track(const kpti_recording *r, uint32_t track)
{
    kpti_track out;
    kpti_assert(track < r->track_count);
    if (r->tracks) return r->tracks[track];
    r->index.read_track(r->index.ctx, track, &out);
    return out;
}

static inline const kpti_chunk *kpti_recording_first_chunk(const kpti_recording *r, uint32_t track)
{
    kpti_assert(track < r->track_count);
    return r->tracks ? r->tracks[track].chunks : r->index.first_chunk(r->index.ctx, track);
}

/* Returns the chunk at PLACE, which may be NULL: PLACE itself, or SPACE with what the index has. */
static inline const kpti_chunk *kpti_recording_chunk(const kpti_recording *r,
                                                     const kpti_chunk *place, kpti_chunk *space)
{
    if (!place || r->tracks) return place;
    r->index.read_chunk(r->index.ctx, place, space);
    return space;
}

#endif
