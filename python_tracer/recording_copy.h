/* recording_copy.h: all that a tracer holds, sent to a sink: a flush to the tracer's own, the end of a recording,
 * or a copy to another sink. No lock is held while a sink runs. */
#ifndef KPTI_PYTHON_TRACER_RECORDING_COPY_H
#define KPTI_PYTHON_TRACER_RECORDING_COPY_H

#include "python_tracer/state/tracer_state.h"

/* Seals and pushes what every thread has recorded so far: when this returns, the tracer's sink has it. No lock
 * is held. */
void kpti_recording_flush(kpti_tracer *tracer);

/* Sends the tracer's sink what is known only when recording has ended. */
void kpti_recording_finish(kpti_tracer *tracer);

/* Sends all that is held to SINK, and keeps it. */
kpt_status kpti_recording_copy(kpti_tracer *tracer, const kpt_chunk_sink *sink, kpti_error *error);

#endif
