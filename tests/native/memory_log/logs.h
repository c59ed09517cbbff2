/* logs.h: the log and the samples as C++ can call them: their own headers have C's atomics. */
#ifndef KPT_TEST_LOGS_H
#define KPT_TEST_LOGS_H

#include "abi/kpt_memory.h"
#include "writers/memory/memory_history.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { LOG_CHUNK = 2720 };

typedef struct kpti_memory_log kpti_memory_log;
kpti_memory_log *log_make(uint64_t most_events, uint64_t sample_bytes);
void log_free(kpti_memory_log *log);
void log_clear(kpti_memory_log *log);
int log_begin(kpti_memory_log *log);
void log_end(kpti_memory_log *log);

/* As the hooks do it: 0: nobody records, or the thread is inside already. */
int log_enter(void);
void log_append(uint64_t now, uint64_t address, uint64_t size, uint32_t kind, uint32_t stack);
void log_leave(void);
/* All three. */
int log_note(uint64_t now, uint64_t address, uint64_t size, uint32_t kind, uint32_t stack);

/* As a host does it; the stack is STACK's. */
void log_report(kpti_memory_log *log, const kpt_memory_report *report, uint32_t stack);

/* What a log holds: the events with their whole times. */
typedef struct log_event {
    uint64_t os_tid;
    uint64_t now;
    uint64_t address;
    uint64_t size;
    uint32_t kind;
    uint32_t stack;
} log_event;
typedef struct log_content {
    log_event *events;
    uint64_t count;
    uint64_t times; /* TIME events beside them */
    uint64_t dropped;
} log_content;
log_content log_read(kpti_memory_log *log); /* events NULL: no memory */
void log_content_free(log_content content);
uint64_t log_counted(kpti_memory_log *log); /* events, TIME events too */
uint64_t log_bytes(kpti_memory_log *log);

/* The stream of a log. */
kpt_status log_stream_begin(kpti_memory_log *log, kpt_memory_sink_fn sink, void *sink_ctx);
kpt_status log_stream_flush(kpti_memory_log *log, int is_end);
void log_stream_end(kpti_memory_log *log);

/* What the handlers around a fork do, in the child. */
void log_forked(void);

/* A thread's sampler, that begins anew with SEED. */
void sample_seed(uint64_t seed);
int sample_takes(uint64_t size, uint64_t mean);
int sample_add(uint64_t address);
int sample_may_live(uint64_t address);
int sample_remove(uint64_t address);
void samples_clear(void);

/* Exports; the recording lasted from ticks 0 on. */
kpt_status log_export(kpti_memory_log *log, const char *path, char *error, size_t error_size);
uint64_t log_ticks(void);

/* From the AFTERth allocation of this thread on there is no memory; 0: there is again. */
void malloc_fails(int after);

#ifdef __cplusplus
}
#endif
#endif
