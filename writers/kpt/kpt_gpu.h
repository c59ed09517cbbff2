/* kpt_gpu.h: the log of what GPUs did as records of a .kpt file, and back. */
#ifndef KPTI_WRITERS_KPT_KPT_GPU_H
#define KPTI_WRITERS_KPT_KPT_GPU_H

#include "writers/gpu/gpu_log.h"
#include "writers/kpt/kpt_writer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What of a log a file has. Begins as zeroes. */
typedef struct kpti_gpu_written {
    uint32_t texts;
    uint32_t nodes;
    uint64_t changes;
} kpti_gpu_written;

/* Writes what is new since WRITTEN, and all events that LOG has now. Returns how many of them the file did
 * not take; what they need comes again the next time. */
uint64_t kpti_gpu_put(kpti_kpt_writer *writer, const kpti_gpu_log *log, kpti_gpu_written *written);

/* The counts, which stand behind all else. */
void kpti_gpu_put_counts(kpti_kpt_writer *writer, const kpti_gpu_log *log);

/* Adds what a record has. Events are borrowed: the record lives as long as LOG. KPT_E_INVALID: it is none;
 * KPT_E_MEMORY, KPT_E_LIMIT. */
kpt_status kpti_gpu_take(kpti_gpu_log *log, const char *bytes, uint64_t size);

#ifdef __cplusplus
}
#endif
#endif
