#include "hosts/standalone/session/recording_source.h"

#include "hosts/standalone/session/session_stream.h"

kpt_status kpti_session_load(kpti_session *s, const char *path, kpti_kpt_reader *reader,
                             kpti_notes *notes, kpti_gpu_log *gpu, kpt_tracer *tracer,
                             kpti_session_error *error)
{
    static const kpti_heap heap = {NULL, NULL, NULL};
    const char *why;
    kpt_status status;
    int os_error = kpti_kpt_open(reader, path, &why);
    if (os_error && !why) return kpti_session_fail_io(error, os_error, path);
    if (os_error) return kpti_session_fail(error, KPT_E_INVALID, "%.180s: %s", path, why);
    kpti_gpu_log_init(gpu, &heap);
    reader->notes = notes;
    reader->gpu = gpu;
    status = kpti_plugin_client_load(&s->client, kpti_kpt_next_chunk, reader, tracer, error);
    if (status == KPT_OK || !reader->why) return status;
    return kpti_session_fail(error, status, "%.180s: %s", path, reader->why);
}

void kpti_source_end(kpti_source *from)
{
    if (from->loaded) (void)from->tracer.ops->destroy(from->tracer.self);
    kpti_notes_free(&from->copied_notes);
    kpti_gpu_log_free(&from->loaded_gpu);
    kpti_kpt_unmap(&from->reader);
}

/* Loads the stream that was written so far. */
static kpt_status load_stream(kpti_session *s, kpti_source *from, kpti_session_error *error)
{
    kpt_status status;
    if (!kpti_kpt_is_in_place(&s->stream)) return kpti_session_fail_replaced(s, error);
    if (!s->stopped) kpti_session_flush(s);
    status = kpti_session_load(s, s->stream_path, &from->reader, &from->copied_notes,
                               &from->loaded_gpu, &from->tracer, error);
    from->file = &from->reader;
    from->may_have_operators = from->reader.formats != 0;
    from->notes = &from->copied_notes;
    from->gpu = &from->loaded_gpu;
    from->loaded = status == KPT_OK;
    if (!from->loaded) kpti_source_end(from);
    return status;
}

/* Copies the notes, since the running program may add notes at any time and must not wait. Returns 0 if there
 * is no memory. */
static int copy_notes(kpti_session *s, kpti_source *from)
{
    int fine = 1;
    pthread_mutex_lock(&s->notes_lock);
    from->copied_notes.first = kpti_notes_first(&s->notes);
    for (uint32_t i = 0; fine && i < s->notes.count; i++)
        fine = kpti_notes_add(&from->copied_notes,
                              kpti_notes_get(&s->notes, from->copied_notes.first + i)) != 0;
    pthread_mutex_unlock(&s->notes_lock);
    from->notes = &from->copied_notes;
    return fine;
}

kpt_status kpti_source_begin(kpti_session *s, const kpti_session_watch *watch, kpti_source *from,
                             kpti_session_error *error)
{
    memset(from, 0, sizeof *from);
    from->tracer = s->tracer;
    from->notes = &s->notes;
    from->gpu = &s->gpu.log;
    from->file = s->reader.bytes ? &s->reader : NULL;
    from->may_have_operators = from->file ? from->file->formats != 0 : s->may_have_operators;
    from->watch = from->file ? watch : NULL;
    if (s->streams) return load_stream(s, from, error);
    kpti_gpu_collect(&s->gpu);
    if (s->stopped || copy_notes(s, from)) return KPT_OK;
    kpti_notes_free(&from->copied_notes);
    return kpti_session_fail(error, KPT_E_MEMORY, "no memory to write the trace");
}

/* How much of a mapped file was passed on since its pages were released, in a unit of the user's. A long file must not
 * stay resident. */
typedef struct resident {
    const kpti_kpt_reader *file;
    uint64_t most;
    uint64_t passed;
} resident;

static void add_resident(resident *r, uint64_t passed)
{
    r->passed += passed;
    if (r->passed <= r->most) return;
    kpti_kpt_release_pages(r->file);
    r->passed = 0;
}

/* Of a delivery, calls are counted. The description of a thread, and the heads of its chunks, take as much of a file as
 * CALLS_OF_THREAD. */
enum { CALLS_RESIDENT = 1 << 19, CALLS_OF_THREAD = 16 };

typedef struct passage {
    resident calls;
    const kpti_session_watch *watch;
    kpt_batch_fn sink;
    void *sink_ctx;
} passage;

static kpt_status pass_on(void *ctx, const kpt_batch *batch)
{
    passage *p = ctx;
    add_resident(&p->calls,
                 batch->activity_count + (uint64_t)CALLS_OF_THREAD * batch->thread_count);
    if (p->watch && p->watch->interrupted && p->watch->interrupted(p->watch->interrupted_ctx))
        return KPT_E_STATE;
    return p->sink(p->sink_ctx, batch);
}

kpt_status kpti_source_deliver(const kpti_source *from, uint32_t order, kpti_extent extent,
                               kpt_batch_fn sink, void *sink_ctx, kpti_session_error *error)
{
    passage through = {{from->file, CALLS_RESIDENT, 0}, from->watch, sink, sink_ctx};
    kpt_delivery delivery;
    kpt_status status;
    KPT_INIT(&delivery);
    delivery.order = order;
    /* A plugin of ABI 1.0 delivers no points, one of 1.1 no ranges. */
    if (from->notes->count && kpti_has_chunks(&from->tracer)) delivery.flags = KPT_DELIVER_POINTS;
    if (extent >= KPTI_WITH_RANGES && kpti_has_operators(&from->tracer))
        delivery.flags |= KPT_DELIVER_RANGES | KPT_DELIVER_PARTS;
    if (extent == KPTI_WITH_INPUTS && kpti_has_operators(&from->tracer) && from->may_have_operators)
        delivery.flags |= KPT_DELIVER_INPUTS;
    delivery.sink = from->file ? pass_on : sink;
    delivery.sink_ctx = from->file ? &through : sink_ctx;
    status = from->tracer.ops->snapshot(from->tracer.self, &delivery);
    if (status != KPT_OK)
        (void)kpti_session_fail_of_tracer(&from->tracer, error, status,
                                          "the recording can't be read");
    return status;
}

enum { BYTES_RESIDENT = 8 << 20 };

typedef struct chunk_passage {
    resident bytes;
    kpt_chunk_fn put;
    void *put_ctx;
} chunk_passage;

static kpt_status pass_on_chunk(void *ctx, const kpt_chunk *chunk)
{
    chunk_passage *p = ctx;
    add_resident(&p->bytes, sizeof *chunk + chunk->size_bytes);
    return p->put(p->put_ctx, chunk);
}

kpt_status kpti_source_chunks(const kpti_source *from, kpt_chunk_fn put, void *put_ctx,
                              kpti_session_error *error)
{
    chunk_passage through = {{from->file, BYTES_RESIDENT, 0}, put, put_ctx};
    kpt_chunk_sink sink;
    kpt_status status = KPT_E_UNSUPPORTED;
    KPT_INIT(&sink);
    sink.flags = KPT_CHUNKS_WHOLE;
    sink.sealed = from->file ? pass_on_chunk : put;
    sink.chunk_ctx = from->file ? &through : put_ctx;
    if (kpti_has_chunks(&from->tracer))
        status = from->tracer.ops->get_chunks(from->tracer.self, &sink);
    if (status != KPT_OK)
        (void)kpti_session_fail_of_tracer(&from->tracer, error, status,
                                          "the recording can't be read");
    return status;
}

static void begin_walk(kpti_operator_walk *walk)
{
    static const kpti_heap heap = {NULL, NULL, NULL};
    kpti_operator_walk_init(walk, &heap, NULL, NULL);
}

kpt_status kpti_source_walk(const kpti_source *from, kpti_operator_walk *walk,
                            kpti_session_error *error)
{
    begin_walk(walk);
    if (!from->may_have_operators) return KPT_OK;
    if (kpti_operator_walk_add_gpu(walk, from->gpu) != KPT_OK)
        return kpti_session_fail(error, KPT_E_MEMORY, "no memory for the launches of the GPU");
    return kpti_source_deliver(from, KPT_ORDER_TIME, KPTI_WITH_RANGES, kpti_operator_walk_batch,
                               walk, error);
}

kpt_status kpti_source_walk_for(const kpti_source *from, const kpti_format *format,
                                kpti_operator_walk *walk, kpti_session_error *error)
{
    if (format->links_operators) return kpti_source_walk(from, walk, error);
    begin_walk(walk);
    return KPT_OK;
}
