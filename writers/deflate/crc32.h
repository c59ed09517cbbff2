/* crc32.h: the checksum of gzip (RFC 1952), computed in steps of 16 bytes. Any thread. Only gzip uses this. */
#ifndef KPTI_WRITERS_DEFLATE_CRC32_H
#define KPTI_WRITERS_DEFLATE_CRC32_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { KPTI_CRC32_STEP = 16 };

/* The contribution of a byte that is followed by 0 to 15 bytes. */
typedef struct kpti_crc32_tables {
    uint32_t bytes[KPTI_CRC32_STEP][256];
} kpti_crc32_tables;

void kpti_crc32_make(kpti_crc32_tables *tables);

/* Returns the checksum of data with checksum CRC followed by DATA. The checksum of no data is 0. */
uint32_t kpti_crc32(const kpti_crc32_tables *tables, uint32_t crc, const void *data, size_t size);

/* Returns the checksum of data with checksum A followed by B_SIZE bytes with checksum B. */
uint32_t kpti_crc32_join(uint32_t a, uint32_t b, uint64_t b_size);

#ifdef __cplusplus
}
#endif
#endif
