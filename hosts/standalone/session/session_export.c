#include "hosts/standalone/session/session_export.h"

#include <stdlib.h>

#include "hosts/standalone/session/recording_source.h"
#include "hosts/standalone/session/session_entry.h"
#include "hosts/standalone/session/session_queries.h"
#include "writers/formats.h"
#include "writers/writer.h"

static int ends_with(const char *text, const char *end)
{
    size_t size = strlen(text);
    return size >= strlen(end) && strcmp(text + size - strlen(end), end) == 0;
}

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
    return kpti_source_deliver(from, KPT_ORDER_THREAD, KPTI_CALLS_ONLY, kpti_session_count_batch,
                               count, error);
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
    if (choice.format->has_findings)
        status = kpti_session_find(from, walk, watch, &findings, error);
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
