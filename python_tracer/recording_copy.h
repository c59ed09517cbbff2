/* recording_copy.h: sends everything that a tracer holds to a sink: a flush to the tracer's own sink, the
 * tables at the end of a recording, or a copy to another sink. No lock is held while a sink runs. */
#ifndef KPTI_PYTHON_TRACER_RECORDING_COPY_H
#define KPTI_PYTHON_TRACER_RECORDING_COPY_H

#include "python_tracer/state/tracer_state.h"

/* Seals and pushes all events recorded so far by every thread. When the function returns, the tracer's sink
 * has received them. The caller holds no lock. */
void kpti_recording_flush(kpti_tracer *tracer);

/* Sends the tracer's sink the tables that are complete only after the recording has ended. */
void kpti_recording_finish(kpti_tracer *tracer);

/* Sends everything that the tracer holds to SINK, and keeps it. Returns KPT_OK, the status of a SINK that
 * refused a chunk, or KPT_E_MEMORY. */
kpt_status kpti_recording_copy(kpti_tracer *tracer, const kpt_chunk_sink *sink, kpti_error *error);

#endif
