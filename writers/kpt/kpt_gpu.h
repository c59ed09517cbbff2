/* kpt_gpu.h: writes a GPU log as records of a .kpt file; kpt_gpu_read.h reads them. */
#ifndef KPTI_WRITERS_KPT_KPT_GPU_H
#define KPTI_WRITERS_KPT_KPT_GPU_H

#include "writers/gpu/gpu_log.h"
#include "writers/kpt/kpt_writer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The part of a log that a file already contains. Zeroed at first. */
typedef struct kpti_gpu_written {
    uint32_t texts;
    uint32_t nodes;
    uint64_t changes;
} kpti_gpu_written;

/* Writes everything that is new since WRITTEN, and all events that LOG has now. Returns how many events could
 * not be written. Texts and nodes that could not be written are retried in the next call. */
uint64_t kpti_gpu_put(kpti_kpt_writer *writer, const kpti_gpu_log *log, kpti_gpu_written *written);

/* Writes the counts, after all other GPU records. */
void kpti_gpu_put_counts(kpti_kpt_writer *writer, const kpti_gpu_log *log);

#ifdef __cplusplus
}
#endif
#endif
