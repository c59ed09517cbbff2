/* convert.h: converts CUPTI's records into the structs that a recording keeps. */
#ifndef KPTI_GPU_TRACER_RECORDS_CONVERT_H
#define KPTI_GPU_TRACER_RECORDS_CONVERT_H

#include "gpu_tracer/cupti/cupti_library.h"
#include "gpu_tracer/records/record_store.h"

/* Converts SIZE bytes of records. Records that do not fit into the budget are counted as dropped; with
 * DROP_ALL, all are. Any thread, no lock held. */
void kpti_convert(const kpti_cupti *cupti, kpti_gpu_store *store, uint8_t *records, size_t size,
                  int drop_all);

#endif
