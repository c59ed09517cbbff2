/* kpt_packing.h: packs chunks of events (core/base/packed_words.h) on their way to a .kpt file.
 *
 * A whole file is written by a thread that has time, which packs. The chunks of a stream come from traced threads: those
 * only copy them into a queue, and a thread of its own packs and writes them, in their order. On a busy machine that
 * thread may not run for long, also while it packs. So a thread that must wait, since the queue is long or has to be
 * empty, packs the oldest chunk itself, also if another thread packs it: the one that finishes first writes it, and the
 * other discards its work. A thread waits only while another one writes the chunk, which is short, or while
 * KPTI_KPT_PACKERS other threads pack; a thread that puts a chunk waits for neither while a buffer is free. A slow thread
 * keeps the buffer that it reads. Buffers are allocated when they are first needed. A chunk for which there is no
 * memory, or that cannot be packed, is written as it is. */
#ifndef KPTI_WRITERS_KPT_KPT_PACKING_H
#define KPTI_WRITERS_KPT_KPT_PACKING_H

#include "core/base/allocator.h"
#include "writers/kpt/kpt_format.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    KPTI_KPT_BUFFERS = 12, /* of 80 kB: chunks of the queue, and those that slow threads read */
    KPTI_KPT_PACKERS =
        4 /* of 144 kB: threads that pack at a time; with a GIL there are hardly more */
};

typedef struct kpti_kpt_packing kpti_kpt_packing;

/* Writes a chunk of SIZE bytes, which has EVENT_BYTES unpacked. Runs on one thread at a time, for chunks that are packed;
 * for others on the thread that puts them. */
typedef kpt_status (*kpti_kpt_packed_fn)(void *ctx, const kpti_kpt_chunk *head, const void *data,
                                         size_t size, size_t event_bytes);

/* Returns NULL if there is no memory, or if no thread can be created for a STREAM. */
kpti_kpt_packing *kpti_kpt_packing_start(const kpti_heap *heap, int stream,
                                         kpti_kpt_packed_fn write, void *ctx);

/* Takes a chunk of events. Any thread. Returns what write returns; of a stream KPT_OK if it is not written yet. */
kpt_status kpti_kpt_packing_put(kpti_kpt_packing *packing, const kpti_kpt_chunk *head,
                                const void *data, size_t size);

/* Waits until all chunks that were put before are written. */
void kpti_kpt_packing_drain(kpti_kpt_packing *packing);

/* Drains, and frees. No thread may put chunks any more. */
void kpti_kpt_packing_end(kpti_kpt_packing *packing);

/* In the child after a fork, which does not have the thread: frees. */
void kpti_kpt_packing_leave(kpti_kpt_packing *packing);

#ifdef __cplusplus
}
#endif
#endif
