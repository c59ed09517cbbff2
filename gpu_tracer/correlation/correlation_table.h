/* correlation_table.h: per-correlation-id state, kept until every record with that id has arrived. */
#ifndef KPTI_GPU_TRACER_CORRELATION_CORRELATION_TABLE_H
#define KPTI_GPU_TRACER_CORRELATION_CORRELATION_TABLE_H

#include "gpu_tracer/session/gpu_session.h"

/* Returns the row, or NULL. */
kpti_gpu_known *kpti_known_find(const kpti_gpu_table *table, uint64_t correlation);
/* Returns the row, and makes it if there is none. Returns NULL if there is no space. */
kpti_gpu_known *kpti_known_row(kpti_gpu_session *s, uint32_t correlation);
/* Marks the rows of the records that are not delivered yet, so that the rows are kept. */
void kpti_known_see(kpti_gpu_session *s);
/* Counts LAUNCHES that have no row, or whose row was dropped. The kernels of AWAITED of them have not
 * arrived. */
void kpti_known_lose(kpti_gpu_session *s, uint64_t launches, uint64_t awaited);
/* Counts the launches whose kernels have not arrived, after the last record. */
void kpti_known_count_lost(kpti_gpu_session *s);
void kpti_known_free(kpti_gpu_session *s);

#endif
