/* log_chunks.h: reads the chunks of a log: all of them as a copy, or each event once, while the log records. */
#ifndef KPTI_CORE_MEMORY_LOG_LOG_CHUNKS_H
#define KPTI_CORE_MEMORY_LOG_LOG_CHUNKS_H

#include "core/memory_log/allocation_log.h"
#include "core/memory_log/event_packer.h"

/* A copy of the log's events. The chunks of a thread are in order; threads are in any order.
 * kpti_memory_log_copy returns NULL if there is no memory. A recording log continues meanwhile. */
typedef struct kpti_memory_copy {
    uint64_t chunk_count;
    struct {
        uint64_t os_tid;
        uint64_t first; /* index in events */
        uint64_t count;
    } * chunks;
    kpti_memory_event *events;
    uint64_t event_count;
    uint64_t dropped;
} kpti_memory_copy;
kpti_memory_copy *kpti_memory_log_copy(kpti_memory_log *log);
void kpti_memory_copy_free(kpti_memory_copy *copy);

/* From now on STREAM reads the chunks, and takes those that are closed and read out of the log. A thread calls PRESS after
 * it has closed one. NULL: there is no stream any more. */
void kpti_memory_log_set_stream(kpti_memory_log *log, kpti_log_stream *stream,
                                void (*press)(kpti_log_stream *stream));
kpti_log_stream *kpti_memory_log_stream(const kpti_memory_log *log);

/* For the stream: lists the events that it has not read as runs, of which *RUNS, from malloc, receives an array. Returns
 * their number; *UNTIL receives the time up to which no event is missing. *RUNS is NULL if there is no memory. */
uint64_t kpti_memory_log_unread(kpti_memory_log *log, kpti_event_run **runs, uint64_t *until);
/* Stores how far RUNS were read, and frees chunks that are read and closed. Returns the events dropped so far. */
uint64_t kpti_memory_log_read(kpti_memory_log *log, const kpti_event_run *runs, uint64_t count);
/* Returns the number of closed chunks that are not read. */
uint64_t kpti_memory_log_waiting(const kpti_memory_log *log);

#endif
