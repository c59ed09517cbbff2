/* chunk_log.h: what a sink of chunks was given, copied, for the rules to look at and to load again. */
#ifndef CHUNK_LOG_H
#define CHUNK_LOG_H

#include "tests/conform/conform.h"

enum { CHUNK_LOG_MOST = 4096 };

typedef struct chunk_log {
    kpt_chunk chunks[CHUNK_LOG_MOST]; /* their bytes are copies, on addresses that 8 divides */
    uint32_t count;
    uint32_t tables;
    uint64_t calls;    /* of the sink */
    kpt_status answer; /* of the sink */
    uint32_t next;     /* that is loaded */
    kpt_status last;   /* what the loader is told behind the last; 0: that there are no more */
} chunk_log;

/* A sink that fills LOG, which is empty then. */
kpt_chunk_sink chunk_log_sink(chunk_log *log, uint32_t flags);
/* What TRACER hands over, as a new log that is the child's for good. The rule is not reached where the plugin
 * is of 1.0, or get_chunks fails; with take also where there is nothing. */
chunk_log *chunk_log_try(conform *c, const kpt_tracer *tracer, uint32_t flags);
chunk_log *chunk_log_take(conform *c, const kpt_tracer *tracer, uint32_t flags);
/* Not reached where the tracer has no get_chunks. */
void chunk_log_need(conform *c, const kpt_tracer *tracer);

/* Arguments that load LOG from its beginning on. */
kpt_load_args chunk_log_args(chunk_log *log);

#endif
