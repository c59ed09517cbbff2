/* chunk_freeze.h: a tracer's chunks, held still while they are read, also while it records. In between
 * no chunk goes or grows; what threads begin meanwhile is joined to the rest afterwards. */
#ifndef KPTI_PYTHON_TRACER_CHUNKS_CHUNK_FREEZE_H
#define KPTI_PYTHON_TRACER_CHUNKS_CHUNK_FREEZE_H

struct kpti_tracer;

/* What is written up to now is complete, and stays as it is until the end. No lock is held. */
void kpti_chunks_freeze(struct kpti_tracer *tracer);
void kpti_chunks_thaw(struct kpti_tracer *tracer);

#endif
