#include "writers/writer.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "abi/kpt_text.h"
#include "core/base/batch_records.h"
#include "writers/format/format.h"

/* --- batches ---------------------------------------------------------------------------------- */

/* Names a thread that has no name. */
static kpt_status make_name(kpti_writer *w, kpt_thread *thread)
{
    enum { MOST = 32 };
    char *text = kpti_fragments_reserve(&w->made_up, MOST);
    if (!text) return KPT_E_MEMORY;
    (void)snprintf(text, MOST, "thread %llu", (unsigned long long)thread->os_tid);
    thread->name = kpt_str_of(text);
    kpti_fragments_keep(&w->made_up, strlen(text) + 1);
    return KPT_OK;
}

static kpt_status take_thread(kpti_writer *w, const kpt_thread *raw)
{
    kpt_thread thread = *raw;
    kpt_status status = KPT_OK;
    if (!thread.os_tid) thread.os_tid = kpti_made_up_tid(thread.index);
    if (!thread.name.size) status = make_name(w, &thread);
    w->threads++;
    return status == KPT_OK ? w->format->ops->thread(w, &thread) : status;
}

static int is_paired(const kpti_writer *w)
{
    return w->format->order == KPT_ORDER_TIME;
}

/* Gives an ended range to the format, as a call. */
static kpt_status give_range(kpti_writer *w, kpt_activity *range)
{
    if (is_paired(w)) range->phase = KPT_PHASE_END;
    return w->format->ops->call(w, range);
}

static kpt_status take_range(kpti_writer *w, const kpt_activity *a)
{
    kpt_activity range = *a;
    kpt_status status = KPT_OK;
    if (w->format->order == KPT_ORDER_START) return w->format->ops->call(w, a);
    if (a->kind == KPT_KIND_RANGE_BEGIN) {
        status = kpti_open_ranges_begin(&w->ranges, &range);
        return status == KPT_OK && is_paired(w) ? w->format->ops->call(w, &range) : status;
    }
    while (status == KPT_OK && kpti_open_ranges_end(&w->ranges, a, &range))
        status = give_range(w, &range);
    return status;
}

/* Ends the ranges that cross a span of the user, where the span ends. A span that began on another thread is no frame of
 * this one. */
static kpt_status cut_ranges(kpti_writer *w, const kpt_activity *point, const kpti_note *note)
{
    const kpti_note *begin = kpti_notes_get(w->notes, note->partner);
    kpt_status status = KPT_OK;
    kpt_activity range;
    if (note->what == KPTI_NOTE_BEGIN)
        return kpti_open_ranges_span(&w->ranges, point, (uint32_t)point->value0);
    if (note->what != KPTI_NOTE_END || !begin || begin->os_tid != note->os_tid) return KPT_OK;
    while (status == KPT_OK && kpti_open_ranges_span_end(&w->ranges, point, note->partner, &range))
        status = give_range(w, &range);
    return status;
}

static kpt_status take_point(kpti_writer *w, const kpt_activity *point)
{
    const kpti_note *note = kpti_notes_get(w->notes, point->value0);
    kpt_status status;
    if (!note) return KPT_OK;
    status = cut_ranges(w, point, note);
    return status == KPT_OK ? w->format->ops->point(w, point, note) : status;
}

static kpt_status take_marker(kpti_writer *w, const kpt_activity *a)
{
    const kpti_format_ops *ops = w->format->ops;
    const kpt_status status = ops->marker ? ops->marker(w, a) : KPT_OK;
    if (status != KPT_OK) return status;
    return a->kind == KPT_KIND_POINT ? take_point(w, a) : take_range(w, a);
}

static kpt_status take_activities(kpti_writer *w, const kpt_batch *batch)
{
    kpt_status (*take_call)(kpti_writer *, const kpt_activity *) = w->format->ops->call;
    const int wants_pairs = is_paired(w);
    kpt_status status = KPT_OK;
    for (uint32_t i = 0; i < batch->activity_count && status == KPT_OK; i++) {
        const kpt_activity *a = kpti_record(batch->activities, batch->activity_stride, i);
        if (a->start_ns < w->first_ns) w->first_ns = a->start_ns;
        if (a->end_ns > w->last_ns) w->last_ns = a->end_ns;
        if (a->kind == KPT_KIND_POINT || a->kind == KPT_KIND_RANGE_BEGIN ||
            a->kind == KPT_KIND_RANGE_END) {
            status = take_marker(w, a);
        } else if ((a->phase == KPT_PHASE_COMPLETE) == wants_pairs) {
            status = KPT_E_UNSUPPORTED;
        } else {
            w->calls += a->phase != KPT_PHASE_END && !(a->flags & KPT_ACTIVITY_CONTINUED);
            status = take_call(w, a);
        }
    }
    return status;
}

/* Returns name I. A plugin of an older ABI has shorter records. */
static kpt_name name_at(const kpt_batch *batch, uint32_t i)
{
    kpt_name name;
    memset(&name, 0, sizeof name);
    memcpy(&name, kpti_record(batch->names, batch->name_stride, i),
           batch->name_stride < sizeof name ? batch->name_stride : sizeof name);
    return name;
}

static kpt_status take_batch(kpti_writer *w, const kpt_batch *batch)
{
    const kpti_format_ops *ops = w->format->ops;
    kpt_status status = KPT_OK;
    kpt_name name;
    if (!kpti_records_can_read(batch)) return KPT_E_SIZE;
    for (uint32_t i = 0; i < batch->name_count && status == KPT_OK; i++) {
        name = name_at(batch, i);
        w->names += !(name.flags & KPT_NAME_INPUTS);
        status = ops->name(w, &name);
    }
    for (uint32_t i = 0; i < batch->thread_count && status == KPT_OK; i++)
        status = take_thread(w, kpti_record(batch->threads, batch->thread_stride, i));
    if (status == KPT_OK && ops->names) status = ops->names(w, batch);
    if (status == KPT_OK) status = take_activities(w, batch);
    if (status == KPT_OK && kpti_out_error(&w->out)) status = KPT_E_IO;
    if (status == KPT_OK && w->progress) w->progress(w->progress_ctx, w->calls);
    return status;
}

kpt_status kpti_writer_batch(void *writer, const kpt_batch *batch)
{
    kpti_writer *w = writer;
    if (w->status == KPT_OK) w->status = take_batch(w, batch);
    return w->status;
}

/* --- processes --------------------------------------------------------------------------------- */

static void set_process(kpti_writer *w, const kpti_writer_options *options)
{
    static const kpti_notes no_notes;
    static const kpti_gpu_log no_gpu;
    w->pid = options->pid ? options->pid : (uint32_t)getpid();
    w->notes = options->notes ? options->notes : &no_notes;
    w->gpu = options->gpu ? options->gpu : &no_gpu;
    w->operators = options->operators;
    w->first_ns = INT64_MAX;
    w->last_ns = INT64_MIN;
    kpti_open_ranges_free(&w->ranges);
}

kpt_status kpti_writer_end_process(kpti_writer *w)
{
    static const kpti_writer_options nobody;
    if (w->status == KPT_OK)
        w->status = w->format->ops->end_process(w);
    else
        w->format->ops->release(w); /* the process may be incomplete */
    set_process(w, &nobody);
    return w->status;
}

kpt_status kpti_writer_begin_process(kpti_writer *w, const kpti_writer_options *options)
{
    if (w->status != KPT_OK) return w->status;
    w->processes++;
    set_process(w, options);
    w->status = w->format->ops->begin_process(w, options);
    return w->status;
}

/* --- the beginning and the end ---------------------------------------------------------------- */

static kpt_status describe(const kpti_format *format, kpti_writer_result *result, kpt_status status,
                           int os_error, const char *path)
{
    result->os_error = status == KPT_E_IO ? os_error : 0;
    if (status == KPT_E_IO)
        (void)snprintf(result->text, sizeof result->text, "%.180s: %s", path, strerror(os_error));
    else if (status == KPT_E_MEMORY)
        (void)snprintf(result->text, sizeof result->text, "no memory to write the trace");
    else if (status == KPT_E_UNSUPPORTED)
        (void)snprintf(result->text, sizeof result->text,
                       "%s can't be written from activities in this order", format->name);
    else if (status != KPT_OK)
        (void)snprintf(result->text, sizeof result->text, "the delivery ended early: %s",
                       kpt_status_name(status));
    return status;
}

static void free_writer(kpti_writer *w)
{
    kpti_heap heap = w->heap;
    w->format->ops->release(w);
    kpti_open_ranges_free(&w->ranges);
    kpti_fragments_free(&w->made_up);
    kpti_heap_give(&heap, w->trace_name, w->trace_name_bytes);
    kpti_heap_give(&heap, w, w->format->ops->writer_bytes);
}

static kpti_writer *make_writer(const kpti_format *format, const char *path,
                                const kpti_writer_options *options)
{
    kpt_str name = options->trace_name.size ? options->trace_name : kpt_str_of(path);
    kpti_writer *w = kpti_heap_take(&options->heap, format->ops->writer_bytes);
    if (!w) return NULL;
    memset(w, 0, format->ops->writer_bytes);
    w->format = format;
    w->heap = w->out.heap = w->ranges.heap = w->made_up.heap = options->heap;
    w->out.interrupted = options->interrupted;
    w->out.interrupted_ctx = options->interrupted_ctx;
    w->out.wants_gzip = options->gzip;
    w->shares_file = options->shares_file;
    set_process(w, options);
    w->base_ns = options->base_ns;
    w->progress = options->progress;
    w->progress_ctx = options->progress_ctx;
    w->trace_name_bytes = (size_t)name.size;
    w->trace_name = kpti_heap_take(&w->heap, w->trace_name_bytes);
    if (!w->trace_name) {
        free_writer(w);
        return NULL;
    }
    memcpy(w->trace_name, name.data, w->trace_name_bytes);
    return w;
}

static kpt_status begin(kpti_writer *w, const char *path, const kpti_writer_options *options,
                        int *os_error)
{
    kpt_status status;
    *os_error = kpti_out_open(&w->out, path);
    if (*os_error) return *os_error == ENOMEM ? KPT_E_MEMORY : KPT_E_IO;
    status = w->format->ops->begin(w, options);
    if (status != KPT_OK) (void)kpti_out_close(&w->out, 0);
    return status;
}

kpt_status kpti_writer_open(const kpti_format *format, const char *path,
                            const kpti_writer_options *options, kpti_writer **out,
                            kpti_writer_result *result)
{
    kpti_writer *w;
    kpt_status status;
    int os_error;
    memset(result, 0, sizeof *result);
    *out = NULL;
    if (!path || !*path) return describe(format, result, KPT_E_INVALID, 0, "");
    w = make_writer(format, path, options);
    if (!w) return describe(format, result, KPT_E_MEMORY, 0, path);
    status = begin(w, path, options, &os_error);
    if (status != KPT_OK) {
        free_writer(w);
        return describe(format, result, status, os_error, path);
    }
    *out = w;
    return KPT_OK;
}

kpt_status kpti_writer_state(const kpti_writer *w, kpti_writer_result *result)
{
    memset(result, 0, sizeof *result);
    return describe(w->format, result, w->status, kpti_out_error(&w->out), w->out.place.path);
}

kpt_status kpti_writer_close(kpti_writer *w, kpt_status status, const kpt_stats *stats,
                             kpti_writer_result *result)
{
    int error;
    memset(result, 0, sizeof *result);
    if (w->status != KPT_OK) status = w->status; /* the delivery returned this status */
    if (status == KPT_OK) status = w->format->ops->end(w, stats);
    error = kpti_out_close(&w->out, status == KPT_OK);
    if (error && (status == KPT_OK || status == KPT_E_IO)) status = KPT_E_IO;
    *result = (kpti_writer_result){
        .activities = w->calls, .names = w->names, .threads = w->threads, .bytes = w->out.written};
    (void)describe(w->format, result, status, error, w->out.place.path);
    free_writer(w);
    return status;
}
