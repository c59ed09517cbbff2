/* gpu_codec.h: packs a GPU activity into bytes: a bit mask of the fields that differ from the previous event,
 * then those fields as varints. Runs of similar kernels take about 30 bytes each. Pure functions. The bytes
 * that are unpacked may be damaged. */
#ifndef KPTI_WRITERS_GPU_GPU_CODEC_H
#define KPTI_WRITERS_GPU_GPU_CODEC_H

#include "writers/gpu/gpu_entry.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Most bytes of an event. */
enum { KPTI_GPU_MAX_BYTES = 512 };

/* Packs ENTRY, whose previous entry is BEFORE. Returns the end of the bytes. */
unsigned char *kpti_gpu_pack(unsigned char *out, const kpti_gpu_entry *entry,
                             const kpti_gpu_entry *before);

/* Replaces *ENTRY, the previous event, by the next one; its name does not change. Returns the end of the bytes, or
 * NULL if there is no whole event before END. */
const unsigned char *kpti_gpu_unpack(const unsigned char *at, const unsigned char *end,
                                     kpti_gpu_entry *entry);

/* The previous entry of the first event of a block. */
extern const kpti_gpu_entry kpti_gpu_nothing;

#ifdef __cplusplus
}
#endif
#endif
