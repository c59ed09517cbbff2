/* kpt_gpu_read.h: reads the records of a GPU log from a .kpt file. */
#ifndef KPTI_WRITERS_KPT_KPT_GPU_READ_H
#define KPTI_WRITERS_KPT_KPT_GPU_READ_H

#include "writers/gpu/gpu_log.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds the content of a record to LOG. Events are borrowed: the record must live as long as LOG. Returns KPT_OK,
 * KPT_E_INVALID if this is no such record, KPT_E_MEMORY or KPT_E_LIMIT. */
kpt_status kpti_gpu_take(kpti_gpu_log *log, const char *bytes, uint64_t size);

#ifdef __cplusplus
}
#endif
#endif
