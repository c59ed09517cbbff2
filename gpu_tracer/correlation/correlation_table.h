/* correlation_table.h: what is known about each correlation id, until every record with that id has come. */
#ifndef KPTI_GPU_TRACER_CORRELATION_CORRELATION_TABLE_H
#define KPTI_GPU_TRACER_CORRELATION_CORRELATION_TABLE_H

#include "gpu_tracer/session/gpu_session.h"

/* Returns the row, or NULL. */
kpti_gpu_known *kpti_known_find(const kpti_gpu_table *table, uint64_t correlation);
/* Returns the row, which is made if there is none, or NULL if there is no room. */
kpti_gpu_known *kpti_known_row(kpti_gpu_session *s, uint32_t correlation);
/* Marks the rows of the records that wait for delivery, so that they are kept. */
void kpti_known_see(kpti_gpu_session *s);
/* Counts LAUNCHES that have no row, or have lost it; the kernels of AWAITED of them have not come. */
void kpti_known_lose(kpti_gpu_session *s, uint64_t launches, uint64_t awaited);
/* Counts the launches whose kernels have not come, after the last record. */
void kpti_known_count_lost(kpti_gpu_session *s);
void kpti_known_free(kpti_gpu_session *s);

#endif
