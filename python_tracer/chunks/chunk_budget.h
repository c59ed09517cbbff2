/* chunk_budget.h: the chunk budget: how many bytes of chunks a tracer may hold, and which chunks a ring
 * drops. "_locked": the caller holds the tracing lock. */
#ifndef KPTI_PYTHON_TRACER_CHUNKS_CHUNK_BUDGET_H
#define KPTI_PYTHON_TRACER_CHUNKS_CHUNK_BUDGET_H

#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/tracer_state.h"

void kpti_budget_free_locked(kpti_tracer *tracer, kpti_chunk *chunk);

/* Whether old chunks may be dropped. Each chunk must then begin with the open calls. */
int kpti_budget_is_ring(const kpti_tracer *tracer);

/* Whether each chunk must begin with the open calls: in a ring, or if a sink reads each chunk by itself. */
int kpti_budget_needs_open_stack(const kpti_tracer *tracer);

/* Returns 1 if a chunk of BYTES may be added. A ring drops older chunks of this stream and of ended threads
 * to stay within the budget. While a snapshot reads, a ring may grow to twice its size. */
int kpti_budget_reserve_locked(kpti_stream *stream, size_t bytes, uint64_t now);

#endif
