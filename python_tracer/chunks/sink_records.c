#include "python_tracer/chunks/sink_records.h"

#include "core/callstacks/function_table.h"

static kpt_status send(const kpt_chunk_sink *sink, const kpt_chunk *chunk)
{
    return sink->sealed(sink->chunk_ctx, chunk);
}

kpt_status kpti_sink_send_table(const kpt_chunk_sink *sink, const kpti_metadata *table)
{
    kpt_chunk chunk;
    if (table->failed) return KPT_E_MEMORY;
    if (!table->size) return KPT_OK;
    kpti_metadata_chunk(table, &chunk);
    return send(sink, &chunk);
}

kpt_status kpti_sink_send_events(const kpt_chunk_sink *sink, const kpti_stream *stream,
                                 uint32_t number, const kpti_chunk *chunk, uint64_t last_ticks)
{
    kpt_chunk out;
    KPT_INIT(&out);
    out.format = atomic_load_explicit(&stream->format, memory_order_relaxed);
    out.thread = number;
    out.sequence = chunk->sequence;
    out.os_tid = stream->os_tid;
    out.first_ticks = chunk->base_ticks;
    out.last_ticks = last_ticks;
    out.dropped_before = chunk->dropped_before;
    out.data = chunk->events;
    out.size_bytes = chunk->count * sizeof(kpti_event);
    out.run = chunk->run;
    return send(sink, &out);
}

void kpti_sink_add_thread(kpti_metadata *table, const kpti_stream *stream, uint32_t number)
{
    const kpti_track track = {NULL,
                              stream->os_tid,
                              stream->host_value,
                              kpt_str_of(stream->name),
                              stream->thread_flags,
                              stream->spans};
    kpti_metadata_add_thread(table, number, &track);
}

/* Each table holds about a megabyte of names. */
kpt_status kpti_sink_send_names(const kpti_tracer *tracer, const kpt_chunk_sink *sink,
                                uint32_t *first)
{
    const uint32_t end = kpti_function_count();
    kpt_status status = KPT_OK;
    while (*first < end && status == KPT_OK) {
        kpti_metadata table = {.env = tracer->env};
        uint32_t next = kpti_metadata_add_names(&table, kpti_function_describe, NULL, *first, end);
        status = kpti_sink_send_table(sink, &table);
        kpti_metadata_free(&table);
        if (status == KPT_OK) *first = next;
    }
    return status;
}
