/* chunk_budget.h: room for chunks: what a tracer may hold, and what a ring lets go of. "_locked": the session's
 * lock is held. */
#ifndef KPTI_PYTHON_TRACER_CHUNKS_CHUNK_BUDGET_H
#define KPTI_PYTHON_TRACER_CHUNKS_CHUNK_BUDGET_H

#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/tracer_state.h"

void kpti_budget_free_locked(kpti_tracer *tracer, kpti_chunk *chunk);

/* Whether old chunks may go, so that each must begin with the calls that are open. */
int kpti_budget_is_ring(const kpti_tracer *tracer);

/* Whether each must do so for another reason too: somebody else reads it by itself. */
int kpti_budget_needs_open_stack(const kpti_tracer *tracer);

/* Whether a chunk of BYTES may be added; a ring makes room at the expense of the stream itself, and of threads that
 * have ended. While a snapshot reads, a ring may become twice as large. */
int kpti_budget_reserve_locked(kpti_stream *stream, size_t bytes, uint64_t now);

/* The stream's thread has ended: what is there of it may go when it is the oldest. */
void kpti_budget_thread_ended_locked(kpti_stream *stream);

#endif
