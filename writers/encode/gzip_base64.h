/* gzip_base64.h: bytes in the midst of a text: compressed by gzip, then as base64. One
 * thread at a time. Only writers use this. */
#ifndef KPTI_WRITERS_ENCODE_GZIP_BASE64_H
#define KPTI_WRITERS_ENCODE_GZIP_BASE64_H

#include "writers/io/output_file.h"

/* Begins as zeroes with an out. */
typedef struct kpti_packed {
    kpti_out_file *out;
    kpti_gzip *gzip; /* NULL: it has not begun */
    uint32_t rest;   /* of bytes that do not make three yet, the last ones in the lowest bits */
    uint32_t rest_count;
} kpti_packed;

/* 0 or ENOMEM. */
int kpti_packed_begin(kpti_packed *packed);
void kpti_packed_put(kpti_packed *packed, const void *data, size_t size);
/* What is left goes out if it is WANTED; also after a begin that failed. */
void kpti_packed_end(kpti_packed *packed, int wanted);

#endif
