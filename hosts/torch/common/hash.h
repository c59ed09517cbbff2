// hash.h: the hash of addresses in tables and caches. core/base/hash.h has the same factor; the shim is compiled
// on the user's machine, without core/.
#ifndef KPTI_HOSTS_TORCH_COMMON_HASH_H
#define KPTI_HOSTS_TORCH_COMMON_HASH_H

#include <cstdint>

namespace kpytrace
{

// 2^64 divided by the golden ratio. The factor spreads near numbers evenly.
constexpr uint64_t HASH_FACTOR = UINT64_C(0x9E3779B97F4A7C15);

// The upper bits of the hash depend on all bits of the address.
inline uint64_t address_hash(const void *address)
{
    return reinterpret_cast<uintptr_t>(address) * HASH_FACTOR;
}

} // namespace kpytrace

#endif
