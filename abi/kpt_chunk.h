/* kpt_chunk.h: full buffers, which the tracer delivers to the host while it runs, so that a long
 * recording need not be held in memory (streaming to a file or a socket). A host that requests
 * whole chunks also receives the data needed to make activities from them in another process
 * (kpt_loader.h). */
#ifndef KPT_CHUNK_H
#define KPT_CHUNK_H

#include "kpt_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The value of a chunk's thread if its bytes are not the events of a thread, but a table that all
 * threads share: names, threads, times. Only if the sink requests tables. */
#define KPT_CHUNK_TABLE 4294967295

/* The sealed buffer of one thread: no thread writes to it any more. Chunks of one thread are
 * delivered in order of sequence, from 0, without gaps unless dropped_before counts the missing
 * events. A restart begins another run, in which the sequence starts again at 0. */
typedef struct kpt_chunk {
    uint32_t struct_size;
    uint32_t format; /* of the bytes: opaque, but chunks of equal format replay alike */
    uint32_t thread; /* the index of a kpt_thread; a tracer never uses it for another thread */
    uint32_t sequence;
    uint64_t os_tid;
    uint64_t first_ticks;
    uint64_t last_ticks;
    uint64_t dropped_before; /* events lost between the previous chunk and this one */
    const void *data;
    uint64_t size_bytes;
    uint32_t run; /* since 1.1: the number of restarts before this chunk */
    uint32_t reserved;
} kpt_chunk;
#define KPT_CHUNK_V1_SIZE KPT_FIELD_END(kpt_chunk, size_bytes)

/* Receives a sealed chunk. If the host returns KPT_OK, it has stored the chunk, and the tracer
 * forgets it. Otherwise the tracer keeps the chunk, within its budget.
 * thread: the traced thread that filled the chunk, in the middle of a call; at stop, the stopping
 *     thread; in get_chunks, the calling thread
 * GIL: may be held; must be neither acquired nor released; no Python may run
 * ownership: the chunk and its bytes belong to the plugin and are valid until the sink returns
 * errors: any status other than KPT_OK refuses the chunk; the tracer counts it
 * since: 1.0 */
typedef kpt_status (*kpt_chunk_fn)(void *chunk_ctx, const kpt_chunk *chunk);

enum {
    /* Also deliver tables, among the other chunks. The table that a chunk's events refer to is
     * delivered before the chunk, or is being delivered on another thread. Since 1.1. */
    KPT_CHUNKS_WHOLE = 1 << 0
};

typedef struct kpt_chunk_sink {
    uint32_t struct_size;
    uint32_t flags;       /* KPT_CHUNKS_*; an unknown bit is refused */
    uint64_t chunk_bytes; /* wanted size of chunks, within reason; 0 = the plugin's choice */
    kpt_chunk_fn sealed;  /* must not be NULL */
    void *chunk_ctx;
} kpt_chunk_sink;
#define KPT_CHUNK_SINK_V1_SIZE KPT_FIELD_END(kpt_chunk_sink, chunk_ctx)

#ifdef __cplusplus
}
#endif
#endif
