/* deflate_fuzz.c: bytes that are compressed are the same when zlib has read them again, in any number of parts.
 *
 * An input is commands: a byte with how many bytes follow, which are put as they are, or with its highest bit set,
 * a copy: of a length and from a distance, two bytes each, so that few bytes make long texts. A distance of 0 ends a
 * part. */
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include "tests/native/fuzz/input.h"
#include "writers/deflate/deflate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 1 << 20, MAX_PARTS = 64 };

typedef struct text {
    uint8_t *bytes;
    size_t size;
    size_t ends[MAX_PARTS];
    size_t parts;
} text;

static void add(text *t, uint8_t byte)
{
    if (t->size < MAX_BYTES) t->bytes[t->size++] = byte;
}

static void end_part(text *t)
{
    if (t->parts < MAX_PARTS - 1) t->ends[t->parts++] = t->size;
}

static void take_copy(text *t, input *in)
{
    size_t length = take(in, 2);
    size_t distance = take(in, 2) + (length & 1); /* 65,536 is one, too */
    if (!distance) end_part(t);
    if (!distance || distance > t->size) return;
    for (; length && t->size < MAX_BYTES; length--)
        add(t, t->bytes[t->size - distance]);
}

static void take_text(text *t, input *in)
{
    while (in->at < in->end) {
        const uint64_t command = take(in, 1);
        if (command & 0x80)
            take_copy(t, in);
        else
            for (uint64_t i = 0; i < command && in->at < in->end; i++)
                add(t, (uint8_t)take(in, 1));
    }
    t->ends[t->parts++] = t->size;
}

static void check(int holds, const char *what)
{
    if (holds) return;
    (void)fprintf(stderr, "broken: %s\n", what);
    abort();
}

/* Each part from and to memory of the very size. */
static size_t compress_part(kpti_deflate *d, const uint8_t *from, size_t size, uint8_t *to)
{
    uint8_t *in = malloc(size ? size : 1);
    uint8_t *out = malloc(KPTI_DEFLATE_ROOM(size));
    size_t produced;
    check(in && out, "no memory");
    memcpy(in, from, size);
    produced = kpti_deflate_part(d, in, size, out);
    check(produced <= KPTI_DEFLATE_ROOM(size), "a part is larger than its room");
    memcpy(to, out, produced);
    free(in);
    free(out);
    return produced;
}

static void expect_same(const text *t, uint8_t *bytes, size_t size)
{
    uint8_t *again = malloc(t->size + 1);
    z_stream z = {0};
    check(again && inflateInit2(&z, -15) == Z_OK, "no memory");
    z.next_in = bytes;
    z.avail_in = (uInt)size;
    z.next_out = again;
    z.avail_out = (uInt)t->size + 1;
    check(inflate(&z, Z_FINISH) == Z_STREAM_END, "no deflate");
    check(z.total_out == t->size && memcmp(again, t->bytes, t->size) == 0, "other bytes");
    (void)inflateEnd(&z);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static kpti_deflate encoder;
    input in = {data, data + size};
    text t = {malloc(MAX_BYTES), 0, {0}, 0};
    uint8_t *bytes = malloc(KPTI_DEFLATE_ROOM(MAX_BYTES) + MAX_PARTS * KPTI_DEFLATE_ROOM(0));
    size_t used = 0;
    size_t at = 0;
    check(t.bytes && bytes, "no memory");
    take_text(&t, &in);
    for (size_t i = 0; i < t.parts; i++) {
        used += compress_part(&encoder, t.bytes + at, t.ends[i] - at, bytes + used);
        at = t.ends[i];
    }
    memcpy(bytes + used, "\3", 2); /* an empty last block */
    expect_same(&t, bytes, used + 2);
    free(t.bytes);
    free(bytes);
    return 0;
}
