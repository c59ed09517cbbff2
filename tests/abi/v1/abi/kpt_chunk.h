/* kpt_chunk.h: full buffers, handed to the host while the tracer runs, so that a long recording
 * need not be held in memory (streaming to a file, a socket). */
#ifndef KPT_CHUNK_H
#define KPT_CHUNK_H

#include "kpt_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One thread's buffer, sealed: nobody writes to it any more. Chunks of one thread come in order of
 * sequence, from 0, without gaps unless dropped_before counts what is missing. */
typedef struct kpt_chunk {
    uint32_t struct_size;
    uint32_t format; /* of the bytes: opaque, but equal formats can be replayed alike */
    uint32_t thread; /* a kpt_thread's index */
    uint32_t sequence;
    uint64_t os_tid;
    uint64_t first_ticks;
    uint64_t last_ticks;
    uint64_t dropped_before; /* events lost between the chunk before and this one */
    const void *data;
    uint64_t size_bytes;
} kpt_chunk;
#define KPT_CHUNK_V1_SIZE KPT_FIELD_END(kpt_chunk, size_bytes)

/* Receives a sealed chunk. KPT_OK: the host has it, and the tracer forgets it. Anything else: the
 * tracer keeps it, within its budget.
 * thread: the traced thread that filled it, in the middle of a call; at stop, the stopping thread
 * GIL: may be held, and must be neither taken nor released; no Python may be run
 * ownership: the chunk and its bytes are the plugin's, until it returns
 * errors: any status but KPT_OK refuses the chunk, and is counted
 * since: 1.0 */
typedef kpt_status (*kpt_chunk_fn)(void *chunk_ctx, const kpt_chunk *chunk);

typedef struct kpt_chunk_sink {
    uint32_t struct_size;
    uint32_t flags;       /* none defined: must be 0 */
    uint64_t chunk_bytes; /* how large chunks should be, within reason; 0 = the plugin's choice */
    kpt_chunk_fn sealed;  /* must not be NULL */
    void *chunk_ctx;
} kpt_chunk_sink;
#define KPT_CHUNK_SINK_V1_SIZE KPT_FIELD_END(kpt_chunk_sink, chunk_ctx)

#ifdef __cplusplus
}
#endif
#endif
