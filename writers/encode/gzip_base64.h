/* gzip_base64.h: writes bytes into a text, compressed by gzip and encoded as base64. One thread at a time. Only
 * writers use this. */
#ifndef KPTI_WRITERS_ENCODE_GZIP_BASE64_H
#define KPTI_WRITERS_ENCODE_GZIP_BASE64_H

#include "writers/io/output_file.h"

/* Zeroed at first, except for out. */
typedef struct kpti_packed {
    kpti_out_file *out;
    kpti_gzip *gzip; /* NULL: not begun */
    uint32_t rest;   /* bytes that do not make three yet, the last in the lowest bits */
    uint32_t rest_count;
} kpti_packed;

/* Returns 0 or ENOMEM. */
int kpti_packed_begin(kpti_packed *packed);
void kpti_packed_put(kpti_packed *packed, const void *data, size_t size);
/* Ends the stream, and writes the remaining bytes if WANTED. Valid also after a failed begin. */
void kpti_packed_end(kpti_packed *packed, int wanted);

#endif
