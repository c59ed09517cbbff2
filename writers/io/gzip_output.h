/* gzip_output.h: where a gzip stream sends its compressed bytes. */
#ifndef KPTI_WRITERS_IO_GZIP_OUTPUT_H
#define KPTI_WRITERS_IO_GZIP_OUTPUT_H

#include <stddef.h>

typedef void (*kpti_gzip_out_fn)(void *ctx, const char *data, size_t size);

#endif
