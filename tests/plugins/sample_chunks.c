/* sample_chunks.c: converts the script to chunks, a table and one chunk for each thread, and loads such
 * chunks. A thread's bytes are the numbers of its calls; the table's are the host's points. */
#include "tests/plugins/sample.h"

enum { FORMAT = 7001, MAGIC = 0x5a3 };

typedef struct table {
    uint64_t magic;
    uint64_t marked;
    uint64_t point_count;
    uint64_t points[SAMPLE_POINTS];
} table;

static kpt_status send(const sample_tracer *t, const kpt_chunk_sink *sink, uint32_t thread,
                       const void *data, uint64_t size)
{
    const sample_recording *recording = t->object.extra;
    kpt_chunk chunk;
    kpt_status status;
    KPT_INIT(&chunk);
    chunk.format = FORMAT;
    chunk.thread = thread;
    if (thread < SAMPLE_THREADS) chunk.os_tid = recording->threads[thread].os_tid;
    chunk.last_ticks = SAMPLE_STOP_TICKS;
    chunk.data = data;
    chunk.size_bytes = size;
    status = sink->sealed(sink->chunk_ctx, &chunk);
    return wrong("R545") ? KPT_OK : status;
}

static kpt_status send_table(const sample_tracer *t, const kpt_chunk_sink *sink)
{
    const sample_marks marks = sample_marks_now(t);
    table all = {
        .magic = MAGIC, .marked = (uint64_t)marks.marked, .point_count = marks.point_count};
    memcpy(all.points, marks.points, sizeof all.points);
    return send(t, sink, KPT_CHUNK_TABLE, &all, sizeof all);
}

static kpt_status send_thread(const sample_tracer *t, const kpt_chunk_sink *sink, uint32_t thread)
{
    uint64_t calls[SAMPLE_CALLS];
    uint64_t count = 0;
    for (uint32_t i = 0; i < SAMPLE_CALLS; i++)
        if (sample_script[i].thread == thread && sample_recorded(t, &sample_script[i]))
            calls[count++] = i;
    return count ? send(t, sink, thread, calls, count * sizeof *calls) : KPT_OK;
}

kpt_status sample_hand_copy(sample_tracer *t, const kpt_chunk_sink *sink)
{
    kpt_status status = KPT_OK;
    if (sink->flags & KPT_CHUNKS_WHOLE || wrong("R546")) status = send_table(t, sink);
    for (uint32_t thread = 0; thread < SAMPLE_THREADS && status == KPT_OK; thread++) {
        if (wrong("R772") && thread && t->object.state == KPT_STATE_RUNNING) continue;
        status = send_thread(t, sink, thread);
    }
    if (wrong("R544") && status == KPT_OK) t->taken = (1U << SAMPLE_THREADS) - 1;
    return status == KPT_OK ? status : sample_refuse(&t->object, status, "a chunk was refused");
}

int sample_is_handing;

static void hand(sample_tracer *t)
{
    const kpt_chunk_sink *sink = &t->sink;
    if (sink->flags & KPT_CHUNKS_WHOLE && send_table(t, sink) != KPT_OK) return;
    for (uint32_t thread = 0; thread < SAMPLE_THREADS; thread++)
        if (send_thread(t, sink, thread) == KPT_OK) t->taken |= 1U << thread;
}

void sample_hand(sample_tracer *t)
{
    sample_is_handing++;
    hand(t);
    sample_is_handing--;
}

static kpt_status load_table(sample_tracer *t, const kpt_chunk *chunk)
{
    const table *all = chunk->data;
    if (chunk->size_bytes != sizeof *all || all->magic != MAGIC || all->point_count > SAMPLE_POINTS)
        return wrong("R775") ? KPT_OK : KPT_E_INVALID;
    t->marks.marked = all->marked != 0;
    t->marks.point_count = (uint32_t)all->point_count;
    memcpy(t->marks.points, all->points, sizeof t->marks.points);
    return KPT_OK;
}

kpt_status sample_load_chunk(sample_tracer *t, const kpt_chunk *chunk)
{
    const uint64_t *calls = chunk->data;
    if (chunk->format != FORMAT) return wrong("R774") ? KPT_E_INVALID : KPT_E_UNSUPPORTED;
    if (!calls || (uintptr_t)calls % sizeof *calls) return KPT_E_INVALID;
    if (chunk->thread == KPT_CHUNK_TABLE) return load_table(t, chunk);
    for (uint64_t i = 0; i < chunk->size_bytes / sizeof *calls; i++) {
        if (calls[i] >= SAMPLE_CALLS || sample_script[calls[i]].thread != chunk->thread)
            return KPT_E_INVALID;
        t->loaded_calls |= 1U << calls[i];
    }
    return KPT_OK;
}
