/* hash.h: the hash functions of all tables and caches. The shim for torch, which is compiled without core/, has
 * the same factor in hosts/torch/common/hash.h. */
#ifndef KPTI_CORE_BASE_HASH_H
#define KPTI_CORE_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* 2^64 divided by the golden ratio. The factor spreads near keys evenly. */
#define KPTI_HASH_FACTOR UINT64_C(0x9E3779B97F4A7C15)

/* Hashes a key by multiplication. Its upper bits depend on all bits of the key, the lower ones only on those
 * below them, so a caller takes upper bits. */
static inline uint64_t kpti_hash_spread(uint64_t key)
{
    return key * KPTI_HASH_FACTOR;
}

/* Mixes a value into a hash. All bits of the result may be used. */
static inline uint64_t kpti_hash_mix(uint64_t hash, uint64_t value)
{
    hash = kpti_hash_spread(hash ^ value);
    return hash ^ hash >> 29;
}

/* FNV-1a: KPTI_HASH_BYTES is the hash of no bytes. */
#define KPTI_HASH_BYTES     UINT64_C(0xCBF29CE484222325)
#define KPTI_HASH_FNV_PRIME UINT64_C(0x100000001B3)

static inline uint64_t kpti_hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *at = (const unsigned char *)bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * KPTI_HASH_FNV_PRIME;
    return hash;
}

#endif
