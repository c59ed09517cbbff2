/* async_writer.h: a second thread that takes full buffers away, in order, so that who fills them waits
 * neither for the system nor for a compressor. Used by one thread; no signal is handled on the
 * courier's. */
#ifndef KPTI_WRITERS_IO_ASYNC_WRITER_H
#define KPTI_WRITERS_IO_ASYNC_WRITER_H

#include "core/base/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_courier kpti_courier;

/* Runs on the courier's thread, for one buffer after the other. */
typedef void (*kpti_carry_fn)(void *ctx, const char *data, size_t size);

/* NULL: there is no memory or no thread to be had. */
kpti_courier *kpti_courier_start(const kpti_heap *heap, size_t buffer_bytes, kpti_carry_fn carry,
                                 void *ctx);

/* Hands over a buffer with SIZE bytes in it, not 0, and returns an empty one for it. Waits while too
 * many are on their way. */
char *kpti_courier_swap(kpti_courier *courier, char *buffer, size_t size);

/* Waits until all is carried, and frees the courier; what swap returned last is the caller's. */
void kpti_courier_end(kpti_courier *courier);

#ifdef __cplusplus
}
#endif
#endif
