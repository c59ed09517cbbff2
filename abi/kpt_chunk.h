/* kpt_chunk.h: full buffers, handed to the host while the tracer runs, so that a long recording
 * need not be held in memory (streaming to a file, a socket). A host that asks for whole chunks gets
 * with them all that it takes to make activities of them again, in another process (kpt_loader.h). */
#ifndef KPT_CHUNK_H
#define KPT_CHUNK_H

#include "kpt_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As a chunk's thread: its bytes are no thread's events, but what belongs to all: names, threads,
 * times. Only where the sink asks for them. */
#define KPT_CHUNK_TABLE 4294967295

/* One thread's buffer, sealed: nobody writes to it any more. Chunks of one thread come in order of
 * sequence, from 0, without gaps unless dropped_before counts what is missing. A restart begins
 * another run, in which they are numbered anew. */
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
    uint32_t run; /* since 1.1: how many restarts there were before */
    uint32_t reserved;
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

enum {
    /* Tables come too, among the others: what a chunk's events refer to is in a table before it, or
     * in one that is being handed over on another thread. Since 1.1. */
    KPT_CHUNKS_WHOLE = 1 << 0
};

typedef struct kpt_chunk_sink {
    uint32_t struct_size;
    uint32_t flags;       /* KPT_CHUNKS_*; an unknown bit is refused */
    uint64_t chunk_bytes; /* how large chunks should be, within reason; 0 = the plugin's choice */
    kpt_chunk_fn sealed;  /* must not be NULL */
    void *chunk_ctx;
} kpt_chunk_sink;
#define KPT_CHUNK_SINK_V1_SIZE KPT_FIELD_END(kpt_chunk_sink, chunk_ctx)

#ifdef __cplusplus
}
#endif
#endif
