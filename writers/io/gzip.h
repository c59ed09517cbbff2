/* gzip.h: bytes in, a gzip stream out, compressed by several threads where there are several processors: each
 * takes a part of what is put, and ends on a whole byte, so that the parts in their order are one stream. A part
 * knows nothing of the one in front of it; with that as its dictionary, streams were 0.3 % smaller.
 *
 * Used by one thread at a time, which compresses too. The other threads are there from the first large put until
 * close; no signal is handled on them. */
#ifndef KPTI_WRITERS_IO_GZIP_H
#define KPTI_WRITERS_IO_GZIP_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_gzip kpti_gzip;

typedef void (*kpti_gzip_out_fn)(void *ctx, const char *data, size_t size);

/* A stream whose bytes go to OUT, on the thread that puts, as they are ready, compressed on as many threads as there
 * are processors, at most four. Returns 0 or ENOMEM. */
int kpti_gzip_open(kpti_gzip **stream, kpti_gzip_out_fn out, void *ctx);

/* When it returns DATA is no longer used. Little is gathered first; 1 MB at a time is best. */
void kpti_gzip_put(kpti_gzip *stream, const char *data, size_t size);

/* Ends the stream, with what is left going to OUT if it is wanted, and frees it. */
void kpti_gzip_close(kpti_gzip *stream, int wanted);

#ifdef __cplusplus
}
#endif
#endif
