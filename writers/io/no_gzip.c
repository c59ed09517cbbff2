/* no_gzip.c: in place of gzip.c where there is no zlib for the target of a cross build. */
#include <errno.h>

#include "writers/io/gzip.h"

int kpti_gzip_open(kpti_gzip **stream, int how, kpti_gzip_out_fn out, void *ctx)
{
    (void)stream;
    (void)how;
    (void)out;
    (void)ctx;
    return ENOTSUP;
}

void kpti_gzip_put(kpti_gzip *stream, const char *data, size_t size)
{
    (void)stream;
    (void)data;
    (void)size;
}

void kpti_gzip_close(kpti_gzip *stream, int wanted)
{
    (void)stream;
    (void)wanted;
}
