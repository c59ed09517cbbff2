/* gpu_codec.h: an event of a GPU in bytes: which of its fields differ from the event before, then those,
 * as numbers of seven bits a byte. Rows of like kernels take some 30 bytes each. Pure functions; what is
 * read may be anything. */
#ifndef KPTI_WRITERS_GPU_GPU_CODEC_H
#define KPTI_WRITERS_GPU_GPU_CODEC_H

#include "writers/gpu/gpu_log.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Most bytes of an event. */
enum { KPTI_GPU_MOST_BYTES = 512 };

/* Packs ENTRY, which comes behind BEFORE; returns where it ended. */
unsigned char *kpti_gpu_pack(unsigned char *out, const kpti_gpu_entry *entry,
                             const kpti_gpu_entry *before);

/* Makes ENTRY, the event before, the next one; its name is left alone. Returns where that ended; NULL:
 * there is none up to END. */
const unsigned char *kpti_gpu_unpack(const unsigned char *at, const unsigned char *end,
                                     kpti_gpu_entry *entry);

/* The first event of a block is packed behind this. */
extern const kpti_gpu_entry kpti_gpu_nothing;

#ifdef __cplusplus
}
#endif
#endif
