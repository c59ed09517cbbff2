/* gzip.h: compresses bytes into a gzip stream. One thread at a time. */
#ifndef KPTI_WRITERS_IO_GZIP_H
#define KPTI_WRITERS_IO_GZIP_H

#include "writers/io/gzip_output.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_gzip kpti_gzip;

/* How it is compressed: with little work on the calling thread, or into few bytes, on several threads, where
 * there is more than one processor. */
enum { KPTI_GZIP_QUICK = 1, KPTI_GZIP_SMALL = 2 };

/* A stream whose bytes go to OUT, on the thread that puts, as they are ready; 0, ENOMEM, or ENOTSUP where this
 * build has no compressor. */
int kpti_gzip_open(kpti_gzip **stream, int how, kpti_gzip_out_fn out, void *ctx);

void kpti_gzip_put(kpti_gzip *stream, const char *data, size_t size);

/* Ends the stream, with what is left going to OUT if it is wanted, and frees it. */
void kpti_gzip_close(kpti_gzip *stream, int wanted);

#ifdef __cplusplus
}
#endif
#endif
