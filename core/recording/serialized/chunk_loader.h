/* chunk_loader.h: loads chunks into a recording. Tables are parsed; events are borrowed. */
#ifndef KPTI_CORE_RECORDING_SERIALIZED_CHUNK_LOADER_H
#define KPTI_CORE_RECORDING_SERIALIZED_CHUNK_LOADER_H

#include "core/base/hash_table.h"
#include "core/recording/serialized/metadata_sections.h"

enum { KPTI_CHUNKS_IN_BLOCK = 1024 };

/* An array that grows. */
typedef struct kpti_list {
    void *items;
    uint64_t capacity;
    uint32_t count;
} kpti_list;

/* A chunk as it was loaded. Replay reads the first field of one that is not a table. */
typedef struct kpti_loaded_chunk {
    kpti_chunk chunk;
    uint64_t os_tid;
    uint64_t last_ticks;
    uint64_t size_bytes;
    uint32_t thread;
    uint32_t format;
} kpti_loaded_chunk;

/* A thread that is being loaded, and its last chunk. */
typedef struct kpti_loaded_thread {
    kpti_track track;
    kpti_chunk *last;
    uint32_t index; /* the recorder's number of the thread */
} kpti_loaded_thread;

/* The position in threads of the thread with an index. */
typedef struct kpti_thread_slot {
    uint32_t index;
    uint32_t end; /* the position + 1; 0 = empty */
} kpti_thread_slot;

typedef struct kpti_loaded {
    const kpti_env *env;
    /* kpti_loaded_chunk *: blocks of KPTI_CHUNKS_IN_BLOCK, in the order of loading. Replay has addresses of chunks, so
     * they never move. */
    kpti_list blocks;
    /* While loading, kpti_loaded_thread, in the order of loading. Afterwards tracks has them by index, in the same
     * memory. */
    kpti_list threads;
    kpti_track *tracks;
    kpti_hash_table slots; /* kpti_thread_slot, by the thread's index; freed when all is loaded */
    kpti_list runs;        /* kpti_run */
    kpti_list names;       /* kpti_function_view */
    kpti_list cross_thread_ends; /* kpti_cross_thread_end */
    kpti_clock_point first_point;
    kpti_clock_point last_point;
    /* odd and different in each load, so that no file can put all its threads into one slot */
    uint64_t multiplier;
    uint32_t points;
    uint64_t chunk_count;
    int whole;           /* the final counters were loaded */
    uint64_t last_ticks; /* latest of all chunks */
    uint64_t min_duration_ns;
    kpt_stats stats;
} kpti_loaded;

static inline kpti_loaded_thread *kpti_loaded_thread_at(const kpti_loaded *r, uint32_t position)
{
    return (kpti_loaded_thread *)r->threads.items + position;
}

static inline kpti_loaded_chunk *kpti_loaded_chunk_at(const kpti_loaded *r, uint64_t index)
{
    kpti_assert(index < r->chunk_count);
    return &((kpti_loaded_chunk **)
                 r->blocks.items)[index / KPTI_CHUNKS_IN_BLOCK][index % KPTI_CHUNKS_IN_BLOCK];
}

/* Fills OUT with chunk INDEX as it was loaded. */
void kpti_loaded_chunk_read(const kpti_loaded *r, uint64_t index, kpt_chunk *out);

/* Return whether CHUNK, which is no table, has packed events, and how many events it has; of an invalid packed chunk 0. */
int kpti_loaded_is_packed(const kpt_chunk *chunk);
uint64_t kpti_loaded_event_count(const kpt_chunk *chunk);

/* Loads all chunks from ARGS into R, which is zeroed except for env and min_duration_ns. R owns the loaded data
 * also on failure. */
kpt_status kpti_load_all(kpti_loaded *r, const kpt_load_args *args, kpti_error *error);

#endif
