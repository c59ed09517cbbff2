#include "writers/kpt/kpt_format.h"

_Static_assert(sizeof(kpti_kpt_head) == 64 && sizeof(kpti_kpt_record) == 24 &&
                   sizeof(kpti_kpt_chunk) == 48 && sizeof(kpti_kpt_note) == 56 &&
                   sizeof(kpti_kpt_gpu) == 16 && sizeof(kpti_kpt_gpu_device) == 56 &&
                   sizeof(kpti_kpt_gpu_name) == 16,
               "the same on every machine");

uint64_t kpti_kpt_sum(uint64_t sum, const void *bytes, size_t size)
{
    static const uint64_t factor = 0x9e3779b97f4a7c15; /* part of the format */
    const char *at = bytes;
    uint64_t word = 0;
    for (; size >= 8; size -= 8, at += 8) {
        memcpy(&word, at, 8);
        sum = (sum ^ word) * factor;
        sum ^= sum >> 29;
    }
    if (!size) return sum;
    word = size;
    memcpy(&word, at, size < 7 ? size : 7);
    return (sum ^ word) * factor;
}
