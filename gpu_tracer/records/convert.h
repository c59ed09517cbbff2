/* convert.h: CUPTI's records made into what is kept of them. */
#ifndef KPTI_GPU_TRACER_RECORDS_CONVERT_H
#define KPTI_GPU_TRACER_RECORDS_CONVERT_H

#include "gpu_tracer/cupti/cupti_library.h"
#include "gpu_tracer/records/record_store.h"

/* Reads SIZE bytes of records. What finds no room is counted as dropped; DROP_ALL: nothing is kept. Any
 * thread, no lock held. */
void kpti_convert(const kpti_cupti *cupti, kpti_gpu_store *store, uint8_t *records, size_t size,
                  int drop_all);

#endif
