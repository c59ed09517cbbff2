#include "tests/abi/conform/chunk_log.h"

static kpt_status take_chunk(void *ctx, const kpt_chunk *chunk)
{
    chunk_log *log = ctx;
    uint32_t known = chunk->struct_size < sizeof *chunk ? chunk->struct_size : sizeof *chunk;
    kpt_chunk *copy = &log->chunks[log->count];
    void *bytes;
    log->calls++;
    if (log->answer != KPT_OK) return log->answer;
    if (log->count == CHUNK_LOG_MAX) return KPT_E_LIMIT;
    bytes = calloc(1, chunk->size_bytes + sizeof(uint64_t));
    if (!bytes) abort();
    if (chunk->size_bytes) memcpy(bytes, chunk->data, chunk->size_bytes);
    memset(copy, 0, sizeof *copy);
    memcpy(copy, chunk, known);
    copy->struct_size = sizeof *copy;
    copy->data = bytes;
    log->count++;
    log->tables += copy->thread == KPT_CHUNK_TABLE;
    return KPT_OK;
}

kpt_chunk_sink chunk_log_sink(chunk_log *log, uint32_t flags)
{
    kpt_chunk_sink sink;
    memset(log, 0, sizeof *log);
    KPT_INIT(&sink);
    sink.flags = flags;
    sink.sealed = take_chunk;
    sink.chunk_ctx = log;
    return sink;
}

void chunk_log_need(conform *c, const kpt_tracer *tracer)
{
    if (!KPT_HAS(tracer->ops, kpt_tracer_ops, get_chunks))
        conform_unreached(c, "the tracer is of ABI 1.0: it has no get_chunks");
}

chunk_log *chunk_log_try(conform *c, const kpt_tracer *tracer, uint32_t flags)
{
    chunk_log *log = calloc(1, sizeof *log);
    kpt_chunk_sink sink;
    kpt_status status;
    if (!log) abort();
    chunk_log_need(c, tracer);
    sink = chunk_log_sink(log, flags);
    status = tracer->ops->get_chunks(tracer->self, &sink);
    if (status != KPT_OK) conform_unreached(c, "get_chunks returned %s", kpt_status_name(status));
    return log;
}

chunk_log *chunk_log_take(conform *c, const kpt_tracer *tracer, uint32_t flags)
{
    chunk_log *log = chunk_log_try(c, tracer, flags);
    if (!log->count) conform_unreached(c, "no chunk was delivered");
    return log;
}

static kpt_status next_chunk(void *ctx, kpt_chunk *out)
{
    chunk_log *log = ctx;
    uint32_t size = out->struct_size < sizeof *out ? out->struct_size : sizeof *out;
    if (log->next == log->count) return log->last ? log->last : KPT_DECLINED;
    memcpy(out, &log->chunks[log->next++], size);
    out->struct_size = size;
    return KPT_OK;
}

kpt_load_args chunk_log_args(chunk_log *log)
{
    kpt_load_args args;
    log->next = 0;
    KPT_INIT(&args);
    args.next = next_chunk;
    args.next_ctx = log;
    return args;
}
