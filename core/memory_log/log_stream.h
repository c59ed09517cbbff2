/* log_stream.h: delivers a log to a sink while it records, so that its memory is bounded. A thread of its own delivers at
 * intervals, and when chunks wait. A recording thread delivers itself only where that thread does not keep up.
 *
 * Recording threads may hold any lock of the program. So a delivery calls nothing but the sink, malloc and the tables of
 * stacks, and acquires no lock under which one of these waits. */
#ifndef KPTI_CORE_MEMORY_LOG_LOG_STREAM_H
#define KPTI_CORE_MEMORY_LOG_LOG_STREAM_H

#include "abi/kpt_memory.h"

typedef struct kpti_memory_log kpti_memory_log;
typedef struct kpti_log_stream kpti_log_stream;

/* Begins to deliver LOG, which must not record. Returns KPT_E_MEMORY if there is no memory or no thread. */
kpt_status kpti_log_stream_begin(kpti_memory_log *log, kpt_memory_sink_fn sink, void *sink_ctx);

/* Delivers all events so far. IS_END: no thread records, and nothing is delivered after this call until
 * kpti_log_stream_resume. Returns the status of the first delivery that failed: nothing is delivered after it. */
kpt_status kpti_log_stream_flush(kpti_log_stream *stream, int is_end);
/* Recording goes on. */
void kpti_log_stream_resume(kpti_log_stream *stream);

/* Ends the thread, and frees the stream. What was not delivered stays in the log. */
void kpti_log_stream_end(kpti_log_stream *stream);
/* The same in the child of a fork, which has no such thread. */
void kpti_log_stream_forked(kpti_log_stream *stream);

#endif
