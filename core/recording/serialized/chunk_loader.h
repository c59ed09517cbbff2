/* chunk_loader.h: loads chunks into a recording. Tables are parsed; events are borrowed. */
#ifndef KPTI_CORE_RECORDING_SERIALIZED_CHUNK_LOADER_H
#define KPTI_CORE_RECORDING_SERIALIZED_CHUNK_LOADER_H

#include "core/base/hash_table.h"
#include "core/recording/serialized/chunk_index.h"
#include "core/recording/serialized/metadata_sections.h"

enum { KPTI_THREADS_IN_BLOCK = 1024, KPTI_THREADS_IN_PAGE = 64 };

/* An array that grows. */
typedef struct kpti_list {
    void *items;
    uint64_t capacity;
    uint32_t count;
} kpti_list;

/* A thread: its chunks, and where the bytes of its section are, which are borrowed and read when it is delivered. */
typedef struct kpti_loaded_thread {
    kpti_chunk *first; /* places in the index of chunks; NULL: it has no chunk */
    kpti_chunk *last;
    const char *section; /* its last description; NULL: it has none */
    uint32_t section_bytes;
    uint32_t index; /* the recorder's number of the thread */
} kpti_loaded_thread;

/* The positions of threads with indices next to each other, in the order of loading. */
typedef struct kpti_thread_page {
    uint32_t number; /* its first index / KPTI_THREADS_IN_PAGE */
    uint32_t spare;
    uint32_t *
        ends; /* by index % KPTI_THREADS_IN_PAGE: position + 1; 0: not loaded. NULL: the slot is empty */
} kpti_thread_page;

typedef struct kpti_loaded {
    const kpti_env *env;
    kpti_chunk_index chunks;
    kpti_list
        blocks; /* kpti_loaded_thread *: blocks of KPTI_THREADS_IN_BLOCK, in the order of loading */
    uint32_t thread_count;
    kpti_hash_table pages; /* kpti_thread_page, by number; freed when all is loaded */
    uint32_t *tracks;      /* when all is loaded: the positions of the threads, by their index */
    kpti_list runs;        /* kpti_run */
    kpti_list names;       /* kpti_function_view */
    kpti_list cross_thread_ends; /* kpti_cross_thread_end */
    kpti_clock_point first_point;
    kpti_clock_point last_point;
    /* odd and different in each load, so that no file can put all its threads into one slot */
    uint64_t multiplier;
    uint32_t points;
    int whole;           /* the final counters were loaded */
    uint64_t last_ticks; /* latest of all chunks */
    uint64_t min_duration_ns;
    kpt_stats stats;
} kpti_loaded;

static inline kpti_loaded_thread *kpti_loaded_thread_at(const kpti_loaded *r, uint32_t position)
{
    kpti_assert(position < r->thread_count);
    return ((kpti_loaded_thread **)r->blocks.items)[position / KPTI_THREADS_IN_BLOCK] +
           position % KPTI_THREADS_IN_BLOCK;
}

/* Read a track, and its first chunk. CTX is a kpti_loaded. */
void kpti_loaded_read_track(const void *ctx, uint32_t track, kpti_track *out);
const kpti_chunk *kpti_loaded_first_chunk(const void *ctx, uint32_t track);

/* Return whether CHUNK, which is no table, has packed events, and how many events it has; of an invalid packed chunk 0. */
int kpti_loaded_is_packed(const kpt_chunk *chunk);
uint64_t kpti_loaded_event_count(const kpt_chunk *chunk);

/* Frees the pages, which only loading needs. */
void kpti_loaded_free_pages(kpti_loaded *r);

/* Loads all chunks from ARGS into R, which is zeroed except for env and min_duration_ns. R owns the loaded data
 * also on failure. */
kpt_status kpti_load_all(kpti_loaded *r, const kpt_load_args *args, kpti_error *error);

#endif
