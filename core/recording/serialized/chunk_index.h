/* chunk_index.h: the chunks of a loaded recording, in the order of loading: a record of some 40 bytes for each, in blocks
 * that never move. The address of a record is the chunk's place, which replay follows as it follows linked chunks
 * (kpti_recording). The events are borrowed.
 *
 * A record is the place of the next chunk of the same thread, then numbers (varint.h) in the order of chunk_index.c. */
#ifndef KPTI_CORE_RECORDING_SERIALIZED_CHUNK_INDEX_H
#define KPTI_CORE_RECORDING_SERIALIZED_CHUNK_INDEX_H

#include "abi/impl/kpti_impl.h"
#include "core/recording/recording.h"

/* Zeroed at first. */
typedef struct kpti_chunk_index {
    char **blocks;
    uint64_t block_capacity;
    uint32_t block_count;
    uint32_t used; /* bytes of the last block */
    uint64_t count;
    uint64_t first_data; /* address of the first chunk's events */
} kpti_chunk_index;

/* A chunk that was read from its record. */
typedef struct kpti_indexed_chunk {
    kpti_chunk
        head; /* as replay sees it; next is a place, and begun the chunk's kpti_chunk_first_ticks */
    kpt_chunk chunk; /* as it was loaded */
} kpti_indexed_chunk;

/* The record that a walk over all chunks reads next. Zeroed at first. */
typedef struct kpti_chunk_walk {
    uint64_t done;
    uint32_t block;
    uint32_t at;
} kpti_chunk_walk;

/* Adds CHUNK, which has COUNT events, packed or not. FIRST_TICKS: its kpti_chunk_first_ticks. Returns its place, or NULL
 * if there is no memory. */
kpti_chunk *kpti_chunk_index_add(kpti_chunk_index *index, const kpti_env *env,
                                 const kpt_chunk *chunk, uint32_t count, uint64_t first_ticks);
void kpti_chunk_index_free(kpti_chunk_index *index, const kpti_env *env);

/* Makes the chunk at NEXT the one that follows the chunk at PLACE. */
void kpti_chunk_index_link(kpti_chunk *place, kpti_chunk *next);

/* Reads the chunk at PLACE. */
void kpti_chunk_index_read(const kpti_chunk_index *index, const kpti_chunk *place,
                           kpti_indexed_chunk *out);

/* Reads the next chunk of a walk. Returns 0 after the last. */
int kpti_chunk_index_next(const kpti_chunk_index *index, kpti_chunk_walk *walk,
                          kpti_indexed_chunk *out);

#endif
