/* async_writer.h: a second thread (kpti_courier) that writes full buffers in order, so that the thread that
 * fills them waits neither for the system nor for a compressor. One thread uses it. The courier's thread
 * handles no signals. */
#ifndef KPTI_WRITERS_IO_ASYNC_WRITER_H
#define KPTI_WRITERS_IO_ASYNC_WRITER_H

#include "core/base/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_courier kpti_courier;

/* Writes one buffer. Runs on the courier's thread, for one buffer after the other. */
typedef void (*kpti_carry_fn)(void *ctx, const char *data, size_t size);

/* Returns NULL if there is no memory or no thread can be created. */
kpti_courier *kpti_courier_start(const kpti_heap *heap, size_t buffer_bytes, kpti_carry_fn carry,
                                 void *ctx);

/* Passes a buffer with SIZE bytes (not 0) to the courier, and returns an empty buffer. Waits while all slots
 * are full. */
char *kpti_courier_swap(kpti_courier *courier, char *buffer, size_t size);

/* Waits until all buffers are written, and frees the courier. The caller owns the buffer that swap returned
 * last. */
void kpti_courier_end(kpti_courier *courier);

#ifdef __cplusplus
}
#endif
#endif
