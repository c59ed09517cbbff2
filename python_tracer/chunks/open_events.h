/* open_events.h: writes the events with which a chunk begins: what is open there. */
#ifndef KPTI_PYTHON_TRACER_CHUNKS_OPEN_EVENTS_H
#define KPTI_PYTHON_TRACER_CHUNKS_OPEN_EVENTS_H

#include "python_tracer/state/stream_state.h"

/* Writes the open calls of a thread whose recording begins, as far as the tracer records them. Returns the end. */
kpti_event *kpti_put_open(const kpti_stream *stream, kpti_open_stack open, uint64_t ticks,
                          kpti_event *at);

/* Writes what is open in a thread whose previous chunk ended with BEFORE: operators, ranges and Python calls. If
 * Python's frames were walked, OPEN has the calls: BEFORE may have some whose exit the interpreter did not report, and
 * only shows where the operators and ranges are among them. C calls are left out, for the same reason. Returns the
 * end. */
kpti_event *kpti_put_open_after(const kpti_stream *stream, kpti_open_stack open,
                                const kpti_open_at_end *before, uint64_t ticks, kpti_event *at);

/* Returns a digest, never 0, of those open calls that the tracer records. */
uint64_t kpti_open_digest(const kpti_stream *stream, kpti_open_stack open);

#endif
