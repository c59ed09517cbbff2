#include "writers/encode/gzip_base64.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Most bytes encoded with one request for output space. */
enum { MAX_BYTES = 48 * 1024 };

/* Writes COUNT of the four digits of 24 BITS. */
static char *put_digits(char *at, uint32_t bits, int count)
{
    for (int i = 0; i < count; i++)
        *at++ = digits[bits >> (18 - 6 * i) & 0x3F];
    return at;
}

static void put_some(kpti_packed *p, const unsigned char *bytes, size_t size)
{
    char *at = kpti_out_reserve(p->out, (size_t)MAX_BYTES * 2);
    for (size_t i = 0; i < size; i++) {
        p->rest = p->rest << 8 | bytes[i];
        if (++p->rest_count < 3) continue;
        at = put_digits(at, p->rest, 4);
        p->rest = p->rest_count = 0;
    }
    kpti_out_wrote(p->out, at);
}

static void put_base64(void *packed, const char *data, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)data;
    while (size) {
        size_t step = size < MAX_BYTES ? size : MAX_BYTES;
        put_some(packed, bytes, step);
        bytes += step;
        size -= step;
    }
}

int kpti_packed_begin(kpti_packed *p)
{
    return kpti_gzip_open(&p->gzip, put_base64, p);
}

void kpti_packed_put(kpti_packed *p, const void *data, size_t size)
{
    kpti_gzip_put(p->gzip, data, size);
}

void kpti_packed_end(kpti_packed *p, int wanted)
{
    if (p->gzip) kpti_gzip_close(p->gzip, wanted);
    p->gzip = NULL;
    if (wanted && p->rest_count) {
        uint32_t digits_left = p->rest_count + 1;
        char *at = kpti_out_reserve(p->out, 4);
        at = put_digits(at, p->rest << 8 * (3 - p->rest_count), (int)digits_left);
        while (digits_left++ < 4)
            *at++ = '=';
        kpti_out_wrote(p->out, at);
    }
    p->rest_count = 0;
}
