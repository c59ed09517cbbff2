/* chunk_freeze.h: freezes a tracer's chunks while a snapshot reads them, also while the tracer records.
 * Between freeze and thaw no chunk is dropped or grows. Chunks that threads begin meanwhile are joined to
 * the others at the thaw. */
#ifndef KPTI_PYTHON_TRACER_CHUNKS_CHUNK_FREEZE_H
#define KPTI_PYTHON_TRACER_CHUNKS_CHUNK_FREEZE_H

struct kpti_tracer;

/* Seals all events written so far; their chunks do not change until kpti_chunks_thaw. The caller holds no
 * lock. */
void kpti_chunks_freeze(struct kpti_tracer *tracer);
void kpti_chunks_thaw(struct kpti_tracer *tracer);

#endif
