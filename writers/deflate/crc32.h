/* crc32.h: the checksum of gzip (RFC 1952), a word at a time. Any thread. Only gzip uses this. */
#ifndef KPTI_WRITERS_DEFLATE_CRC32_H
#define KPTI_WRITERS_DEFLATE_CRC32_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { KPTI_CRC32_STEP = 16 };

/* What a byte does to the checksum, with 0 to 15 bytes behind it. */
typedef struct kpti_crc32_tables {
    uint32_t bytes[KPTI_CRC32_STEP][256];
} kpti_crc32_tables;

void kpti_crc32_make(kpti_crc32_tables *tables);

/* The checksum of what CRC is the checksum of and DATA behind it; 0 is that of nothing. */
uint32_t kpti_crc32(const kpti_crc32_tables *tables, uint32_t crc, const void *data, size_t size);

/* The checksum of A's bytes and B's behind them, of which there are B_SIZE. */
uint32_t kpti_crc32_join(uint32_t a, uint32_t b, uint64_t b_size);

#ifdef __cplusplus
}
#endif
#endif
