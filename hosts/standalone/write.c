#include <stdlib.h>

#include "records.h"
#include "session.h"

/* Whom a delivery comes from: the session's tracer, or the file that a stream has become. */
typedef struct source {
    kpt_tracer tracer;
    const kpti_notes *notes;
    int loaded;
    kpti_notes copied_notes;
    kpti_kpt_reader reader;
    const kpti_kpt_reader *file; /* this one, or the session's; NULL: it is in memory */
} source;

static int ends_with(const char *text, const char *end)
{
    size_t size = strlen(text);
    return size >= strlen(end) && strcmp(text + size - strlen(end), end) == 0;
}

static void end_source(source *from)
{
    if (from->loaded) (void)from->tracer.ops->destroy(from->tracer.self);
    kpti_notes_free(&from->copied_notes);
    kpti_kpt_unmap(&from->reader);
}

/* What has been streamed so far, read back. */
static kpt_status load_stream(kpti_session *s, source *from, kpti_session_error *error)
{
    kpt_status status;
    if (!s->stopped) kpti_session_flush(s);
    status = kpti_session_load(s, s->stream_path, &from->reader, &from->copied_notes, &from->tracer,
                               error);
    from->file = &from->reader;
    from->notes = &from->copied_notes;
    from->loaded = status == KPT_OK;
    if (!from->loaded) end_source(from);
    return status;
}

/* While the program runs it may note more at any time, and must not wait. 0: no memory. */
static int copy_notes(kpti_session *s, source *from)
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

static kpt_status begin_source(kpti_session *s, source *from, kpti_session_error *error)
{
    memset(from, 0, sizeof *from);
    from->tracer = s->tracer;
    from->notes = &s->notes;
    from->file = s->reader.bytes ? &s->reader : NULL;
    if (s->streams) return load_stream(s, from, error);
    if (s->stopped || copy_notes(s, from)) return KPT_OK;
    kpti_notes_free(&from->copied_notes);
    return kpti_session_fail(error, KPT_E_MEMORY, "no memory to write the trace");
}

/* What comes from a file is resident for a while only, however long it is: that of so many calls. */
enum { CALLS_RESIDENT = 1 << 20 };

typedef struct passage {
    const kpti_kpt_reader *file;
    kpt_batch_fn sink;
    void *sink_ctx;
    uint64_t calls;
} passage;

static kpt_status pass_on(void *ctx, const kpt_batch *batch)
{
    passage *p = ctx;
    p->calls += batch->activity_count;
    if (p->calls > CALLS_RESIDENT) {
        kpti_kpt_let_go(p->file);
        p->calls = 0;
    }
    return p->sink(p->sink_ctx, batch);
}

static kpt_status deliver(const source *from, uint32_t order, kpt_batch_fn sink, void *sink_ctx,
                          kpti_session_error *error)
{
    passage through = {from->file, sink, sink_ctx, 0};
    kpt_delivery delivery;
    kpt_status status;
    KPT_INIT(&delivery);
    delivery.order = order;
    /* A plugin of 1.0 has no points to give. */
    if (from->notes->count && kpti_has_chunks(&from->tracer)) delivery.flags = KPT_DELIVER_POINTS;
    delivery.sink = from->file ? pass_on : sink;
    delivery.sink_ctx = from->file ? &through : sink_ctx;
    status = from->tracer.ops->snapshot(from->tracer.self, &delivery);
    if (status != KPT_OK)
        (void)kpti_session_fail_of_tracer(&from->tracer, error, status,
                                          "the recording can't be read");
    return status;
}

static kpt_status count_batch(void *ctx, const kpt_batch *batch)
{
    kpti_session_count *count = ctx;
    for (uint32_t i = 0; i < batch->activity_count; i++) {
        const kpt_activity *a = kpti_record(batch->activities, batch->activity_stride, i);
        count->calls += a->kind != KPT_KIND_POINT;
    }
    count->names += batch->name_count;
    count->threads += batch->thread_count;
    return KPT_OK;
}

kpt_status kpti_session_count_calls(kpti_session *s, kpti_session_count *count,
                                    kpti_session_error *error)
{
    source from;
    kpt_status status = kpti_session_enter(s, error);
    memset(count, 0, sizeof *count);
    if (status != KPT_OK) return status;
    status = begin_source(s, &from, error);
    if (status == KPT_OK) {
        status = deliver(&from, KPT_ORDER_THREAD, count_batch, count, error);
        end_source(&from);
    }
    return kpti_session_leave(s, status);
}

/* What a profile's batches pass through. */
typedef struct profiling {
    kpti_profile *profile;
    const kpti_session_watch *watch;
    uint64_t calls;
} profiling;

static kpt_status profile_batch(void *ctx, const kpt_batch *batch)
{
    profiling *p = ctx;
    p->calls += batch->activity_count;
    if (p->watch->progress) p->watch->progress(p->watch->progress_ctx, p->calls);
    return kpti_profile_batch(p->profile, batch);
}

kpt_status kpti_session_profile(kpti_session *s, const kpti_session_watch *watch,
                                kpti_profile *profile, kpti_session_error *error)
{
    profiling p = {profile, watch, 0};
    source from;
    kpt_status status = kpti_session_enter(s, error);
    if (status != KPT_OK) return status;
    status = begin_source(s, &from, error);
    if (status == KPT_OK) {
        status = deliver(&from, KPT_ORDER_THREAD, profile_batch, &p, error);
        end_source(&from);
    }
    return kpti_session_leave(s, status);
}

/* --- files ------------------------------------------------------------------------------------ */

/* As a .kpt file: the chunks as they are. */
static kpt_status write_kpt(kpti_session *s, const source *from, const char *path,
                            const kpti_session_watch *watch, kpti_session_count *count,
                            kpti_session_error *error)
{
    kpti_kpt_writer *w = calloc(1, sizeof *w);
    kpt_chunk_sink sink;
    kpt_status status;
    int os_error;
    if (!w) return kpti_session_fail(error, KPT_E_MEMORY, "no memory to write the trace");
    w->out.interrupted = watch->interrupted;
    w->out.interrupted_ctx = watch->interrupted_ctx;
    os_error = kpti_kpt_create(w, path, 0, s->traced_pid, s->base_ns, kpt_str_of(s->info));
    if (os_error) {
        free(w);
        return kpti_session_fail_io(error, os_error, path);
    }
    KPT_INIT(&sink);
    sink.flags = KPT_CHUNKS_WHOLE;
    sink.sealed = kpti_kpt_put_chunk;
    sink.chunk_ctx = w;
    kpti_kpt_put_notes(w, from->notes);
    status = kpti_has_chunks(&from->tracer) ? from->tracer.ops->get_chunks(from->tracer.self, &sink)
                                            : KPT_E_UNSUPPORTED;
    if (status != KPT_OK)
        (void)kpti_session_fail_of_tracer(&from->tracer, error, status,
                                          "the recording can't be read");
    os_error = kpti_kpt_close(w, status == KPT_OK);
    count->bytes = w->out.written;
    free(w);
    if (os_error) return kpti_session_fail_io(error, os_error, path);
    if (status != KPT_OK) return status;
    return deliver(from, KPT_ORDER_THREAD, count_batch, count, error);
}

static kpt_status write_format(kpti_session *s, const source *from, const char *path,
                               const kpti_session_watch *watch, kpti_session_count *count,
                               kpti_session_error *error)
{
    const kpti_format_choice choice = kpti_format_of_path(path);
    const kpt_str info = kpt_str_of(s->info);
    kpti_writer_options options;
    kpti_writer *writer;
    kpti_writer_result result;
    kpt_stats stats;
    kpt_status status;
    memset(&options, 0, sizeof options);
    options.base_ns = s->base_ns;
    options.pid = (uint32_t)s->traced_pid;
    options.gzip = choice.gzip;
    options.version = kpti_kpt_info(info, "version");
    options.process_name = kpti_kpt_info(info, "process");
    options.notes = from->notes;
    options.interrupted = watch->interrupted;
    options.interrupted_ctx = watch->interrupted_ctx;
    options.progress = watch->progress;
    options.progress_ctx = watch->progress_ctx;
    status = kpti_writer_open(choice.format, path, &options, &writer, &result);
    if (status == KPT_OK) {
        error->text[0] = 0;
        status = deliver(from, choice.format->order, kpti_writer_batch, writer, error);
        KPT_INIT(&stats);
        (void)from->tracer.ops->get_stats(from->tracer.self, &stats);
        status = kpti_writer_close(writer, status, &stats, &result);
        *count =
            (kpti_session_count){result.activities, result.names, result.threads, result.bytes};
        /* The tracer's own failure has the tracer's words, the file's has the writer's. */
        if (status != KPT_OK && status != KPT_E_IO && error->text[0]) return status;
    }
    if (status == KPT_OK) return status;
    (void)kpti_session_fail(error, status, "%s", result.text);
    error->os_error = result.os_error;
    return status;
}

kpt_status kpti_session_write_inside(kpti_session *s, const char *path,
                                     const kpti_session_watch *watch, kpti_session_count *count,
                                     kpti_session_error *error)
{
    source from;
    kpt_status status = begin_source(s, &from, error);
    if (status != KPT_OK) return status;
    status = ends_with(path, ".kpt") ? write_kpt(s, &from, path, watch, count, error)
                                     : write_format(s, &from, path, watch, count, error);
    end_source(&from);
    return status;
}

kpt_status kpti_session_write(kpti_session *s, const char *path, const kpti_session_watch *watch,
                              kpti_session_count *count, kpti_session_error *error)
{
    kpt_status status = kpti_session_enter(s, error);
    memset(count, 0, sizeof *count);
    if (status != KPT_OK) return status;
    return kpti_session_leave(s, kpti_session_write_inside(s, path, watch, count, error));
}
