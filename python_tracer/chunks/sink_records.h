/* sink_records.h: writes the records that a sink receives: chunks of events, and the tables that describe
 * them. */
#ifndef KPTI_PYTHON_TRACER_CHUNKS_SINK_RECORDS_H
#define KPTI_PYTHON_TRACER_CHUNKS_SINK_RECORDS_H

#include "core/recording/serialized/metadata_sections.h"
#include "python_tracer/state/stream_state.h"
#include "python_tracer/state/tracer_state.h"

/* Sends TABLE unless it is empty. Returns the sink's status, or KPT_E_MEMORY if the table is incomplete. */
kpt_status kpti_sink_send_table(const kpt_chunk_sink *sink, const kpti_metadata *table);
/* Sends CHUNK of STREAM, whose last event is not after LAST_TICKS, as a chunk of thread NUMBER. */
kpt_status kpti_sink_send_events(const kpt_chunk_sink *sink, const kpti_stream *stream,
                                 uint32_t number, const kpti_chunk *chunk, uint64_t last_ticks);
/* Adds the description of the stream's thread to TABLE, as thread NUMBER. */
void kpti_sink_add_thread(kpti_metadata *table, const kpti_stream *stream, uint32_t number);
/* Sends the names of functions from *FIRST on, in tables of a megabyte. *FIRST becomes the first function
 * that the sink does not have. Returns the sink's status, or KPT_E_MEMORY. */
kpt_status kpti_sink_send_names(const kpti_tracer *tracer, const kpt_chunk_sink *sink,
                                uint32_t *first);

#endif
