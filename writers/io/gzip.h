/* gzip.h: compresses to a gzip stream, on several threads if there are several processors. Each thread
 * compresses a part of the input and ends it on a whole byte, so that the parts in order are one stream. A part
 * does not use the previous part as its dictionary; with it, streams were 0.3 % smaller.
 *
 * One thread at a time uses a stream, and compresses too. The other threads run from the first large put until
 * close, and handle no signals. */
#ifndef KPTI_WRITERS_IO_GZIP_H
#define KPTI_WRITERS_IO_GZIP_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_gzip kpti_gzip;

typedef void (*kpti_gzip_out_fn)(void *ctx, const char *data, size_t size);

/* Opens a stream. It passes its bytes to OUT when they are ready, on the thread that calls put. It compresses
 * on as many threads as there are processors, at most four. Returns 0 or ENOMEM. */
int kpti_gzip_open(kpti_gzip **stream, kpti_gzip_out_fn out, void *ctx);

/* DATA is not used after the return. Small inputs are collected first; 1 MB at a time is best. */
void kpti_gzip_put(kpti_gzip *stream, const char *data, size_t size);

/* Ends and frees the stream. The remaining bytes are passed to OUT if WANTED. */
void kpti_gzip_close(kpti_gzip *stream, int wanted);

#ifdef __cplusplus
}
#endif
#endif
