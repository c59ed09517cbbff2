/* chunk_log.h: a copy of the chunks that a chunk sink received, which rules check and load again. */
#ifndef CHUNK_LOG_H
#define CHUNK_LOG_H

#include "tests/abi/conform/conform.h"

enum { CHUNK_LOG_MAX = 4096 };

typedef struct chunk_log {
    kpt_chunk chunks[CHUNK_LOG_MAX]; /* their bytes are copies, on addresses that 8 divides */
    uint32_t count;
    uint32_t tables;
    uint64_t calls;    /* of the sink */
    kpt_status answer; /* the sink's return value */
    uint32_t next;     /* the next chunk to be loaded */
    /* status of the loader's callback after the last chunk; 0 for KPT_DECLINED, which ends the load */
    kpt_status last;
} chunk_log;

/* Returns a sink that fills LOG, and empties LOG. */
kpt_chunk_sink chunk_log_sink(chunk_log *log, uint32_t flags);
/* Returns a new log of the chunks that TRACER delivers; the child process never frees it. The rule is not
 * reached if the plugin is of 1.0 or get_chunks fails; with take, also if there are no chunks. */
chunk_log *chunk_log_try(conform *c, const kpt_tracer *tracer, uint32_t flags);
chunk_log *chunk_log_take(conform *c, const kpt_tracer *tracer, uint32_t flags);
/* The rule is not reached if the tracer has no get_chunks. */
void chunk_log_need(conform *c, const kpt_tracer *tracer);

/* Arguments that load LOG from its beginning on. */
kpt_load_args chunk_log_args(chunk_log *log);

#endif
