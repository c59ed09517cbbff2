#include "writers/io/gzip.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#define ZLIB_CONST
#include <zlib.h>

#include "writers/io/parallel_gzip.h"

/* Measured on traces (MB/s, times smaller): level 1 262 and 13.0, level 3 242 and 13.5, level 6 98 and
 * 15.5, level 9, which is Python's own, 43 and 16.3. More memory than 8 was slower. */
enum { LEVEL = 1, WINDOW_BITS = 15, GZIP_HEADER = 16, MEMORY = 8 };
enum { OUT_BYTES = 64 * 1024, MOST_IN_BYTES = 1 << 30 };

struct kpti_gzip {
    kpti_gzip_team *team; /* NULL: what is below is used */
    z_stream z;
    kpti_gzip_out_fn out;
    void *ctx;
    char buffer[OUT_BYTES];
};

int kpti_gzip_open(kpti_gzip **stream, int how, kpti_gzip_out_fn out, void *ctx)
{
    kpti_gzip *made = calloc(1, sizeof *made);
    if (!made) return ENOMEM;
    made->out = out;
    made->ctx = ctx;
    *stream = made;
    if (how == KPTI_GZIP_SMALL && kpti_gzip_team_open(&made->team, out, ctx) == 0) return 0;
    if (deflateInit2(&made->z, LEVEL, Z_DEFLATED, WINDOW_BITS + GZIP_HEADER, MEMORY,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        free(made);
        *stream = NULL;
        return ENOMEM;
    }
    return 0;
}

/* Until all input is taken, or with Z_FINISH all output is out. */
static void run(kpti_gzip *s, int flush)
{
    do {
        s->z.next_out = (Bytef *)s->buffer;
        s->z.avail_out = OUT_BYTES;
        (void)deflate(&s->z, flush); /* can't fail: the stream is ours, and room is there */
        if (s->z.avail_out < OUT_BYTES) s->out(s->ctx, s->buffer, OUT_BYTES - s->z.avail_out);
    } while (s->z.avail_out == 0);
}

void kpti_gzip_put(kpti_gzip *s, const char *data, size_t size)
{
    if (s->team) {
        kpti_gzip_team_put(s->team, data, size);
        return;
    }
    while (size) {
        size_t step = size < MOST_IN_BYTES ? size : MOST_IN_BYTES;
        s->z.next_in = (const Bytef *)data;
        s->z.avail_in = (uInt)step;
        run(s, Z_NO_FLUSH);
        data += step;
        size -= step;
    }
}

void kpti_gzip_close(kpti_gzip *s, int wanted)
{
    if (s->team) {
        kpti_gzip_team_close(s->team, wanted);
    } else {
        if (wanted) run(s, Z_FINISH);
        (void)deflateEnd(&s->z);
    }
    free(s);
}
