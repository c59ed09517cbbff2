/* async_writer.h: a second thread (kpti_async_writer) that writes full buffers in order, so that the thread that
 * fills them waits neither for the system nor for a compressor. One thread uses it. The writer's thread
 * handles no signals. */
#ifndef KPTI_WRITERS_IO_ASYNC_WRITER_H
#define KPTI_WRITERS_IO_ASYNC_WRITER_H

#include "core/base/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_async_writer kpti_async_writer;

/* Writes one buffer. Runs on the writer's thread, for one buffer after the other. */
typedef void (*kpti_carry_fn)(void *ctx, const char *data, size_t size);

/* Returns NULL if there is no memory or no thread can be created. */
kpti_async_writer *kpti_async_writer_start(const kpti_heap *heap, size_t buffer_bytes,
                                           kpti_carry_fn carry, void *ctx);

/* Passes a buffer with SIZE bytes (not 0) to the second thread, and returns an empty buffer. Waits while all slots
 * are full. */
char *kpti_async_writer_swap(kpti_async_writer *w, char *buffer, size_t size);

/* Waits until all buffers are written, and frees W. The caller owns the buffer that swap returned
 * last. */
void kpti_async_writer_end(kpti_async_writer *w);

#ifdef __cplusplus
}
#endif
#endif
