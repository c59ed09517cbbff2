#include "hosts/standalone/session/session_export.h"

#include <stdlib.h>

#include "core/base/batch_records.h"
#include "hosts/standalone/session/recording_source.h"
#include "hosts/standalone/session/session_entry.h"
#include "writers/findings/findings.h"
#include "writers/formats.h"
#include "writers/writer.h"

static int ends_with(const char *text, const char *end)
{
    size_t size = strlen(text);
    return size >= strlen(end) && strcmp(text + size - strlen(end), end) == 0;
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

static kpt_status deliver(kpti_session *s, const kpti_session_watch *watch, kpti_extent extent,
                          kpt_batch_fn sink, void *sink_ctx, kpti_session_error *error)
{
    kpti_source from;
    kpt_status status = kpti_session_enter(s, error);
    if (status != KPT_OK) return status;
    status = kpti_source_begin(s, watch, &from, error);
    if (status == KPT_OK) {
        if (extent == KPTI_CALLS_ONLY || from.may_have_operators)
            status = kpti_source_deliver(&from, KPT_ORDER_THREAD, extent, sink, sink_ctx, error);
        kpti_source_end(&from);
    }
    return kpti_session_leave(s, status);
}

kpt_status kpti_session_deliver(kpti_session *s, const kpti_session_watch *watch, kpt_batch_fn sink,
                                void *sink_ctx, kpti_session_error *error)
{
    return deliver(s, watch, KPTI_CALLS_ONLY, sink, sink_ctx, error);
}

kpt_status kpti_session_deliver_ranges(kpti_session *s, const kpti_session_watch *watch,
                                       kpt_batch_fn sink, void *sink_ctx, kpti_session_error *error)
{
    return deliver(s, watch, KPTI_WITH_RANGES, sink, sink_ctx, error);
}

kpt_status kpti_session_count_calls(kpti_session *s, kpti_session_count *count,
                                    kpti_session_error *error)
{
    memset(count, 0, sizeof *count);
    return kpti_session_deliver(s, NULL, count_batch, count, error);
}

/* The context of a profile's sink. */
typedef struct profiling {
    kpt_batch_fn sink;
    void *profile;
    const kpti_session_watch *watch;
    uint64_t calls;
} profiling;

static kpt_status profile_batch(void *ctx, const kpt_batch *batch)
{
    profiling *p = ctx;
    p->calls += batch->activity_count;
    if (p->watch->progress) p->watch->progress(p->watch->progress_ctx, p->calls);
    return p->sink(p->profile, batch);
}

kpt_status kpti_session_profile(kpti_session *s, const kpti_session_watch *watch,
                                kpti_profile *profile, kpti_session_error *error)
{
    profiling p = {kpti_profile_batch, profile, watch, 0};
    return kpti_session_deliver(s, watch, profile_batch, &p, error);
}

kpt_status kpti_session_tasks(kpti_session *s, const kpti_session_watch *watch,
                              kpti_task_profile *profile, kpti_session_task_fn each, void *each_ctx,
                              kpti_session_error *error)
{
    profiling p = {kpti_task_profile_batch, profile, watch, 0};
    const kpti_task_row *rows;
    uint32_t count;
    kpti_source from;
    kpt_status status = kpti_session_enter(s, error);
    if (status != KPT_OK) return status;
    status = kpti_source_begin(s, watch, &from, error);
    if (status == KPT_OK) {
        kpti_task_profile_notes(profile, from.notes);
        status =
            kpti_source_deliver(&from, KPT_ORDER_THREAD, KPTI_CALLS_ONLY, profile_batch, &p, error);
        rows = kpti_task_profile_rows(profile, &count);
        for (uint32_t i = 0; status == KPT_OK && i < count; i++)
            if (rows[i].task) each(each_ctx, &rows[i], kpti_notes_get(from.notes, rows[i].task));
        kpti_source_end(&from);
    }
    return kpti_session_leave(s, status);
}

kpt_status kpti_session_operators(kpti_session *s, const kpti_session_watch *watch,
                                  kpti_operator_table *table, kpti_session_error *error)
{
    profiling p = {kpti_operator_table_batch, table, watch, 0};
    kpti_source from;
    kpt_status status = kpti_session_enter(s, error);
    if (status != KPT_OK) return status;
    status = kpti_source_begin(s, watch, &from, error);
    if (status == KPT_OK) {
        status = kpti_operator_table_add_gpu(table, from.gpu);
        if (status != KPT_OK) (void)kpti_session_fail(error, status, "no memory for the table");
        if (status == KPT_OK)
            status = kpti_source_deliver(&from, KPT_ORDER_TIME, KPTI_WITH_RANGES, profile_batch, &p,
                                         error);
        kpti_source_end(&from);
    }
    return kpti_session_leave(s, status);
}

kpt_status kpti_session_edges(kpti_session *s, const kpti_session_watch *watch,
                              kpti_call_edges *edges, kpti_session_error *error)
{
    profiling p = {kpti_call_edges_batch, edges, watch, 0};
    kpti_source from;
    kpt_status status = kpti_session_enter(s, error);
    if (status != KPT_OK) return status;
    status = kpti_source_begin(s, watch, &from, error);
    if (status == KPT_OK) {
        status =
            kpti_source_deliver(&from, KPT_ORDER_TIME, KPTI_CALLS_ONLY, profile_batch, &p, error);
        kpti_source_end(&from);
    }
    return kpti_session_leave(s, status);
}

kpt_status kpti_session_steps(kpti_session *s, const kpti_session_watch *watch,
                              kpti_step_finder *finder, kpti_session_error *error)
{
    static const kpti_heap heap = {NULL, NULL, NULL};
    profiling p = {kpti_step_finder_batch, finder, watch, 0};
    kpti_source from;
    kpt_status status = kpti_session_enter(s, error);
    kpti_step_finder_init(finder, &heap, NULL);
    if (status != KPT_OK) return status;
    status = kpti_source_begin(s, watch, &from, error);
    if (status == KPT_OK) {
        finder->notes = from.notes;
        if (from.may_have_operators || from.notes->count)
            status = kpti_source_deliver(&from, KPT_ORDER_TIME, KPTI_WITH_RANGES, profile_batch, &p,
                                         error);
        kpti_source_end(&from);
    }
    return kpti_session_leave(s, status);
}

/* --- GPUs ------------------------------------------------------------------------------------- */

uint32_t kpti_session_recorded_gpu(const kpti_session *session)
{
    return session->gpu.tracer.ops ? session->gpu.recorded : 0;
}

const char *kpti_session_gpu_reason(const kpti_session *session)
{
    return session->gpu.reason[0] ? session->gpu.reason : NULL;
}

const kpti_gpu_log *kpti_session_gpu(const kpti_session *session)
{
    return &session->gpu.log;
}

kpt_status kpti_session_with_gpu(kpti_session *s, kpti_session_gpu_fn use, void *ctx,
                                 kpti_session_error *error)
{
    kpti_operator_walk walk;
    kpti_source from;
    kpt_status status = kpti_session_enter(s, error);
    if (status != KPT_OK) return status;
    status = kpti_source_begin(s, NULL, &from, error);
    if (status == KPT_OK) {
        status = kpti_source_walk(&from, &walk, error);
        if (status == KPT_OK) {
            status = use(ctx, from.gpu, &walk.launches);
            if (status != KPT_OK) (void)kpti_session_fail(error, status, "no memory for the table");
        }
        kpti_operator_walk_free(&walk);
        kpti_source_end(&from);
    }
    return kpti_session_leave(s, status);
}

/* --- findings ---------------------------------------------------------------------------------- */

/* Writes what stands out in the recording to OUT, as JSON. */
static kpt_status find(const kpti_source *from, kpti_operator_walk *walk,
                       const kpti_session_watch *watch, kpti_text_builder *out,
                       kpti_session_error *error)
{
    kpti_findings *findings;
    profiling p = {kpti_findings_batch, NULL, watch, 0};
    kpti_findings_rest rest = {NULL, from->gpu, &walk->launches};
    kpt_stats stats;
    kpt_status status = kpti_findings_open(&out->heap, from->notes, &findings);
    if (status == KPT_OK) {
        p.profile = findings;
        error->text[0] = 0;
        status =
            kpti_source_deliver(from, KPT_ORDER_THREAD, KPTI_CALLS_ONLY, profile_batch, &p, error);
    } else {
        return kpti_session_fail(error, status, "no memory to find what stands out");
    }
    KPT_INIT(&stats);
    if (from->tracer.ops->get_stats(from->tracer.self, &stats) == KPT_OK) rest.stats = &stats;
    if (status == KPT_OK) {
        status = kpti_findings_write(findings, &rest, out);
        if (status != KPT_OK)
            (void)kpti_session_fail(error, status, "no memory to find what stands out");
    }
    kpti_findings_free(findings);
    return status;
}

kpt_status kpti_session_explain(kpti_session *s, const kpti_session_watch *watch,
                                kpti_text_builder *out, kpti_session_error *error)
{
    kpti_operator_walk walk;
    kpti_source from;
    kpt_status status = kpti_session_enter(s, error);
    if (status != KPT_OK) return status;
    status = kpti_source_begin(s, watch, &from, error);
    if (status == KPT_OK) {
        status = kpti_source_walk(&from, &walk, error);
        if (status == KPT_OK) status = find(&from, &walk, watch, out, error);
        kpti_operator_walk_free(&walk);
        kpti_source_end(&from);
    }
    return kpti_session_leave(s, status);
}

/* --- files ------------------------------------------------------------------------------------ */

/* Copies the allocations of a file. Returns 0 or an errno. */
static int copy_memory(kpti_kpt_writer *w, const kpti_kpt_reader *file)
{
    kpti_kpt_reader r = *file;
    kpti_kpt_record head;
    const char *bytes;
    int error = 0;
    kpti_kpt_rewind(&r);
    while (!error && (bytes = kpti_kpt_next_record(&r, &head)) && head.kind != KPTI_KPT_END)
        if (head.kind == KPTI_KPT_MEMORY) error = kpti_kpt_put_memory(w, bytes, head.size);
    return error;
}

/* Writes a .kpt file with unchanged chunks. */
static kpt_status write_kpt(kpti_session *s, const kpti_source *from, const char *path,
                            const kpti_session_watch *watch, kpti_session_count *count,
                            kpti_session_error *error)
{
    kpti_kpt_writer *w = calloc(1, sizeof *w);
    kpti_gpu_written written = {0, 0, 0};
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
    if (!s->no_compress) (void)kpti_kpt_pack(w);
    kpti_kpt_put_notes(w, from->notes);
    (void)kpti_gpu_put(w, from->gpu, &written);
    if (written.texts) kpti_gpu_put_counts(w, from->gpu);
    if (from->file && from->file->has_memory)
        (void)copy_memory(w, from->file); /* close reports it */
    status = kpti_source_chunks(from, kpti_kpt_put_chunk, w, error);
    os_error = kpti_kpt_close(w, status == KPT_OK);
    count->bytes = w->out.written;
    free(w);
    if (os_error) return kpti_session_fail_io(error, os_error, path);
    if (status != KPT_OK) return status;
    return kpti_source_deliver(from, KPT_ORDER_THREAD, KPTI_CALLS_ONLY, count_batch, count, error);
}

static kpt_status write_found(kpti_session *s, const kpti_source *from, kpti_operator_walk *walk,
                              kpt_str findings, kpti_format_choice choice, const char *path,
                              const kpti_session_watch *watch, kpti_session_count *count,
                              kpti_session_error *error)
{
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
    options.is_compact = s->is_compact;
    options.version = kpti_kpt_info(info, "version");
    options.process_name = kpti_kpt_info(info, "process");
    options.notes = from->notes;
    options.gpu = from->gpu;
    options.interrupted = watch->interrupted;
    options.interrupted_ctx = watch->interrupted_ctx;
    options.progress = watch->progress;
    options.progress_ctx = watch->progress_ctx;
    options.operators = walk;
    options.findings = findings;
    status = kpti_writer_open(choice.format, path, &options, &writer, &result);
    if (status == KPT_OK) {
        error->text[0] = 0;
        status = kpti_source_deliver(from, choice.format->order, kpti_extent_of(choice.format),
                                     kpti_writer_batch, writer, error);
        KPT_INIT(&stats);
        (void)from->tracer.ops->get_stats(from->tracer.self, &stats);
        status = kpti_writer_close(writer, status, &stats, &result);
        *count =
            (kpti_session_count){result.activities, result.names, result.threads, result.bytes};
        /* For a failure of the tracer, ERROR has the tracer's text already. For a failure of the file, the
         * writer's text is used. */
        if (status != KPT_OK && status != KPT_E_IO && error->text[0]) return status;
    }
    if (status == KPT_OK) return status;
    (void)kpti_session_fail(error, status, "%s", result.text);
    error->os_error = result.os_error;
    return status;
}

static kpt_status write_walked(kpti_session *s, const kpti_source *from, kpti_operator_walk *walk,
                               kpti_format_choice choice, const char *path,
                               const kpti_session_watch *watch, kpti_session_count *count,
                               kpti_session_error *error)
{
    static const kpti_heap heap = {NULL, NULL, NULL};
    kpti_text_builder findings = {.heap = heap};
    kpt_status status = KPT_OK;
    if (choice.format->has_findings) status = find(from, walk, watch, &findings, error);
    if (status == KPT_OK)
        status = write_found(s, from, walk, (kpt_str){findings.text, findings.size}, choice, path,
                             watch, count, error);
    kpti_text_builder_free(&findings);
    return status;
}

static kpt_status write_format(kpti_session *s, const kpti_source *from, const char *path,
                               const kpti_session_watch *watch, kpti_session_count *count,
                               kpti_session_error *error)
{
    const kpti_format_choice choice = kpti_format_of_path(path);
    kpti_operator_walk walk;
    kpt_status status = kpti_source_walk_for(from, choice.format, &walk, error);
    if (status == KPT_OK) status = write_walked(s, from, &walk, choice, path, watch, count, error);
    kpti_operator_walk_free(&walk);
    return status;
}

kpt_status kpti_session_write_inside(kpti_session *s, const char *path,
                                     const kpti_session_watch *watch, kpti_session_count *count,
                                     kpti_session_error *error)
{
    kpti_source from;
    kpt_status status;
    /* Otherwise the stream would continue in a file that has no name any more. */
    if (s->stream_open && kpti_file_id_is_at(&s->stream.id, path))
        return kpti_session_fail(
            error, KPT_E_INVALID,
            "the trace is already being written to %.180s: choose another path", path);
    status = kpti_source_begin(s, watch, &from, error);
    if (status != KPT_OK) return status;
    status = ends_with(path, ".kpt") ? write_kpt(s, &from, path, watch, count, error)
                                     : write_format(s, &from, path, watch, count, error);
    kpti_source_end(&from);
    return status;
}

/* The file is complete, so SIGTERM has nothing to write any more. The caller holds control. This function
 * releases it while it removes the SIGTERM flush, which may wait for control. */
static void end_sigterm_flush(kpti_session *s)
{
    s->is_saved = 1;
    pthread_mutex_unlock(&s->control);
    kpti_sigterm_flush_remove(&s->sigterm_flush);
    pthread_mutex_lock(&s->control);
}

kpt_status kpti_session_write(kpti_session *s, const char *path, const kpti_session_watch *watch,
                              kpti_session_count *count, kpti_session_error *error)
{
    kpt_status status = kpti_session_enter(s, error);
    memset(count, 0, sizeof *count);
    if (status != KPT_OK) return status;
    status = kpti_session_write_inside(s, path, watch, count, error);
    if (status == KPT_OK && s->stopped && strcmp(path, s->dump_path) == 0) end_sigterm_flush(s);
    return kpti_session_leave(s, status);
}
