/* chunk_loader.h: chunks on their way into a recording: tables are taken apart, events are lent. */
#ifndef KPTI_CORE_RECORDING_SERIALIZED_CHUNK_LOADER_H
#define KPTI_CORE_RECORDING_SERIALIZED_CHUNK_LOADER_H

#include "core/recording/serialized/metadata_sections.h"

enum { KPTI_HEADS_IN_BLOCK = 1024 };

/* An array that grows. */
typedef struct kpti_list {
    void *items;
    uint64_t room;
    uint32_t count;
} kpti_list;

/* A thread, and where its next chunk goes. */
typedef struct kpti_loaded_thread {
    kpti_track track;
    kpti_chunk *last;
    uint32_t index; /* as the recorder numbered it */
} kpti_loaded_thread;

typedef struct kpti_loaded {
    const kpti_env *env;
    kpti_list chunks;  /* of kpt_chunk, as they came */
    kpti_list heads;   /* of kpti_chunk *, by block: KPTI_HEADS_IN_BLOCK each */
    kpti_list threads; /* of kpti_loaded_thread: as they came, and once all is loaded, by index */
    kpti_list slots;   /* of uint32_t: a hash table from a thread's index to its place in threads */
    kpti_list runs;    /* of kpti_run */
    kpti_list names;   /* of kpti_function_view */
    kpti_list far_ends; /* of kpti_far_end */
    kpti_clock_point first_point;
    kpti_clock_point last_point;
    uint64_t
        multiplier; /* odd, and other in each load: no file can have all its threads in one slot */
    uint32_t points;
    uint32_t head_count; /* taken of the last block of heads */
    int whole;           /* the counters that come at the end are there */
    uint64_t last_ticks; /* of all chunks */
    uint64_t min_duration_ns;
    kpt_stats stats;
} kpti_loaded;

static inline kpti_loaded_thread *kpti_loaded_thread_at(const kpti_loaded *r, uint32_t place)
{
    return (kpti_loaded_thread *)r->threads.items + place;
}

/* Takes all chunks that ARGS gives into R, which is zeroes but for env and min_duration_ns. What was taken
 * is R's in either case. */
kpt_status kpti_load_all(kpti_loaded *r, const kpt_load_args *args, kpti_error *error);

#endif
