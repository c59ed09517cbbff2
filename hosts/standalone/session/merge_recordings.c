#include "hosts/standalone/session/merge_recordings.h"

#include <stdlib.h>

#include "core/base/batch_records.h"
#include "hosts/standalone/session/recording_source.h"
#include "hosts/standalone/session/session_entry.h"
#include "writers/formats.h"
#include "writers/writer.h"

struct kpti_merge {
    char path[PATH_MAX];
    int64_t base_ns;
    kpti_format_choice choice;
    kpti_writer *writer; /* NULL before the first add */
    kpt_stats stats;     /* of all parts */
    /* The callbacks of the current add, for interrupts and progress while the file is written. */
    kpti_session_watch watch;
    /* The part of the current add: */
    const kpti_merge_part *part;
    char *shifted; /* activities with the file's times */
    size_t shifted_bytes;
};

static int interrupted(void *merge)
{
    const kpti_session_watch *watch = &((kpti_merge *)merge)->watch;
    return watch->interrupted ? watch->interrupted(watch->interrupted_ctx) : 0;
}

static void progress(void *merge, uint64_t calls)
{
    const kpti_session_watch *watch = &((kpti_merge *)merge)->watch;
    if (watch->progress) watch->progress(watch->progress_ctx, calls);
}

kpt_status kpti_merge_open(const char *path, int64_t base_ns, kpti_merge **out,
                           kpti_session_error *error)
{
    const kpti_format_choice choice = kpti_format_of_path(path);
    kpti_merge *m;
    *out = NULL;
    if (!kpti_format_takes_processes(choice.format))
        return kpti_session_fail(error, KPT_E_UNSUPPORTED, "a %s file can hold only one process",
                                 choice.format->name);
    m = calloc(1, sizeof *m);
    if (!m) return kpti_session_fail(error, KPT_E_MEMORY, "no memory to write the trace");
    (void)snprintf(m->path, sizeof m->path, "%s", path);
    m->base_ns = base_ns;
    m->choice = choice;
    KPT_INIT(&m->stats);
    *out = m;
    return KPT_OK;
}

/* --- clocks ------------------------------------------------------------------------------------ */

/* Writes BATCH with the file's times. */
static kpt_status shift_batch(void *merge, const kpt_batch *batch)
{
    kpti_merge *m = merge;
    const size_t bytes = (size_t)batch->activity_count * batch->activity_stride;
    kpt_batch shifted = *batch;
    if (!kpti_records_can_read(batch)) return KPT_E_SIZE;
    if (bytes > m->shifted_bytes) {
        free(m->shifted);
        m->shifted = malloc(bytes);
        m->shifted_bytes = m->shifted ? bytes : 0;
        if (!m->shifted) return KPT_E_MEMORY;
    }
    if (bytes) memcpy(m->shifted, batch->activities, bytes);
    for (uint32_t i = 0; i < batch->activity_count; i++) {
        kpt_activity *a = (void *)(m->shifted + (size_t)i * batch->activity_stride);
        a->start_ns = kpti_shifted(&m->part->clock, a->start_ns);
        a->end_ns = kpti_shifted(&m->part->clock, a->end_ns);
    }
    shifted.activities = (const void *)m->shifted;
    return kpti_writer_batch(m->writer, &shifted);
}

/* Returns 0 if there is no memory. */
static int shift_notes(const kpti_merge_part *part, const kpti_notes *notes, kpti_notes *out)
{
    const uint32_t first = kpti_notes_first(notes);
    out->first = first;
    for (uint32_t i = 0; i < notes->count; i++) {
        kpti_note note = *kpti_notes_get(notes, first + i);
        note.ns = kpti_shifted(&part->clock, note.ns);
        if (!kpti_notes_add(out, &note)) return 0;
    }
    return 1;
}

/* --- parts ------------------------------------------------------------------------------------- */

static kpt_status fail_of_writer(kpti_session_error *error, kpt_status status,
                                 const kpti_writer_result *result)
{
    (void)kpti_session_fail(error, status, "%s", result->text);
    error->os_error = result->os_error;
    return status;
}

static kpt_status begin_part(kpti_merge *m, kpti_session *s, const kpti_merge_part *part,
                             const kpti_notes *notes, const kpti_gpu_log *gpu,
                             kpti_operator_walk *operators, kpti_session_error *error)
{
    kpti_writer_result result;
    kpti_writer_options options;
    kpt_status status;
    memset(&options, 0, sizeof options);
    options.base_ns = m->base_ns;
    options.pid = part->pid ? part->pid : (uint32_t)s->traced_pid;
    options.process_name = part->name;
    options.process_label = part->label;
    options.notes = notes;
    options.gpu = gpu;
    options.operators = operators;
    options.shares_file = 1;
    if (m->writer)
        return kpti_writer_begin_process(m->writer, &options); /* the end reports the error */
    options.version = kpti_kpt_info(kpt_str_of(s->info), "version");
    options.gzip = m->choice.gzip;
    options.interrupted = interrupted;
    options.interrupted_ctx = m;
    options.progress = progress;
    options.progress_ctx = m;
    status = kpti_writer_open(m->choice.format, m->path, &options, &m->writer, &result);
    return status == KPT_OK ? status : fail_of_writer(error, status, &result);
}

static void add_stats(kpti_merge *m, const kpt_tracer *tracer)
{
    kpt_stats stats;
    KPT_INIT(&stats);
    if (tracer->ops->get_stats(tracer->self, &stats) != KPT_OK) return;
    m->stats.events += stats.events;
    m->stats.events_dropped += stats.events_dropped;
    m->stats.events_repaired += stats.events_repaired;
    m->stats.events_filtered += stats.events_filtered;
    m->stats.threads += stats.threads;
    m->stats.threads_unreached += stats.threads_unreached;
    m->stats.functions_disabled += stats.functions_disabled;
}

static kpt_status add_source(kpti_merge *m, kpti_session *s, const kpti_source *from,
                             const kpti_merge_part *part, kpti_session_error *error)
{
    static const kpti_notes none;
    kpti_notes shifted = none;
    const kpti_notes *notes = from->notes;
    const int is_shifted = kpti_is_shift(&part->clock);
    kpti_gpu_log gpu = *from->gpu; /* the source still owns the contents */
    kpti_operator_walk operators;
    kpti_writer_result result;
    kpt_status status = kpti_source_walk_for(from, m->choice.format, &operators, error);
    if (is_shifted) {
        notes = &shifted;
        gpu.shift = operators.shift = &part->clock;
        kpti_gpu_launches_shift(&operators.launches, &part->clock);
        if (status == KPT_OK && !shift_notes(part, from->notes, &shifted))
            status = kpti_session_fail(error, KPT_E_MEMORY, "no memory to write the trace");
    }
    if (status == KPT_OK) status = begin_part(m, s, part, notes, &gpu, &operators, error);
    m->part = part;
    if (status == KPT_OK)
        status =
            kpti_source_deliver(from, m->choice.format->order, kpti_extent_of(m->choice.format),
                                is_shifted ? shift_batch : kpti_writer_batch,
                                is_shifted ? (void *)m : (void *)m->writer, error);
    if (status == KPT_OK) add_stats(m, &from->tracer);
    /* The notes, the log and the walk are freed next, also if the part failed. */
    if (m->writer && kpti_writer_end_process(m->writer) != KPT_OK)
        status = fail_of_writer(error, kpti_writer_state(m->writer, &result), &result);
    kpti_notes_free(&shifted);
    kpti_operator_walk_free(&operators);
    return status;
}

kpt_status kpti_merge_add(kpti_merge *m, kpti_session *s, const kpti_merge_part *part,
                          const kpti_session_watch *watch, kpti_session_error *error)
{
    kpti_source from;
    kpt_status status = kpti_session_enter(s, error);
    if (status != KPT_OK) return status;
    m->watch = *watch;
    status = kpti_source_begin(s, watch, &from, error);
    if (status == KPT_OK) {
        status = add_source(m, s, &from, part, error);
        kpti_source_end(&from);
    }
    memset(&m->watch, 0, sizeof m->watch);
    return kpti_session_leave(s, status);
}

kpt_status kpti_merge_close(kpti_merge *m, int keep, kpti_session_count *count,
                            kpti_session_error *error)
{
    kpti_writer_result result;
    kpt_status status = KPT_OK;
    memset(count, 0, sizeof *count);
    if (!m) return KPT_OK;
    if (m->writer) {
        status = kpti_writer_close(m->writer, keep ? KPT_OK : KPT_E_STATE, &m->stats, &result);
        *count =
            (kpti_session_count){result.activities, result.names, result.threads, result.bytes};
        if (status != KPT_OK) (void)fail_of_writer(error, status, &result);
    }
    free(m->shifted);
    free(m);
    return status;
}
