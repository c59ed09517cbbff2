#include "chrome_json.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "chrome_events.h"

/* Real ones are below 2^22 on Linux. */
enum { FIRST_MADE_UP_TID = 10 * 1000 * 1000 };

struct kpti_chrome {
    kpti_out_file out;
    kpti_heap heap;
    kpt_status status; /* the first failure of a batch */
    uint32_t pid;
    kpti_chrome_events events;
    kpti_fragments names;   /* escaped; the note is the first line */
    kpti_fragments threads; /* from the name's end to where the start time goes */
    char *trace_name;
    size_t trace_name_bytes;
};

#define PUT KPTI_PUT

/* What few calls have. */
static char *put_rare_args(char *at, const kpt_activity *a, uint32_t first_line)
{
    if (a->kind == KPT_KIND_GC) {
        at = kpti_put_u64(PUT(at, ",\"generation\":"), a->value0);
        at = kpti_put_u64(PUT(at, ",\"collected\":"), a->value1);
        at = kpti_put_u64(PUT(at, ",\"uncollectable\":"), a->value2);
    }
    if (a->line && a->line != first_line) at = kpti_put_u64(PUT(at, ",\"line\":"), a->line);
    if (a->flags & KPT_ACTIVITY_BEGAN_BEFORE) at = PUT(at, ",\"began before\":true");
    if (a->flags & KPT_ACTIVITY_ENDED_BY_STOP) at = PUT(at, ",\"ended by stop\":true");
    if (a->flags & KPT_ACTIVITY_CLAMPED) at = PUT(at, ",\"clamped\":true");
    if (a->flags & KPT_ACTIVITY_RECOVERED) at = PUT(at, ",\"recovered\":true");
    return at;
}

static void put_activity(kpti_chrome *w, const kpt_activity *a)
{
    kpti_fragment name = kpti_fragments_get(&w->names, a->name, kpti_chrome_no_name);
    kpti_fragment thread = kpti_fragments_get(&w->threads, a->thread, kpti_chrome_no_thread);
    kpti_fragment more = {NULL, 0, 0};
    char rare[KPTI_CHROME_MOST_REST];
    if (a->flags || a->kind == KPT_KIND_GC || (a->line && a->line != name.note)) {
        more.text = rare;
        more.size = (uint32_t)(put_rare_args(rare, a, name.note) - rare);
    }
    kpti_chrome_put(&w->events, a, name, thread, more);
}

/* --- names and threads ------------------------------------------------------------------------ */

static void put_text(kpti_chrome *w, const char *text)
{
    kpti_out_put(&w->out, text, strlen(text));
}

static kpt_status take_name(kpti_chrome *w, const kpt_name *name)
{
    kpt_str text = name->display.size ? name->display : name->function;
    return kpti_chrome_add_name(&w->names, name->index, text, name->first_line);
}

static char *put_metadata_head(const kpti_chrome *w, char *at, const char *what, uint64_t tid)
{
    at = kpti_chrome_escape(PUT(at, "{\"ph\":\"M\",\"name\":\""), kpt_str_of(what));
    at = kpti_put_u64(PUT(at, "\",\"pid\":"), w->pid);
    at = kpti_put_u64(PUT(at, ",\"tid\":"), tid);
    return PUT(at, ",\"args\":{");
}

/* Goes on where the comma before it was written, or none was needed. */
static void put_metadata_name(kpti_chrome *w, const char *what, uint64_t tid, kpt_str name)
{
    char *at = kpti_out_room(&w->out, KPTI_OUT_BUFFER_BYTES / 2);
    at = put_metadata_head(w, at, what, tid);
    at = kpti_chrome_escape(PUT(at, "\"name\":\""), name);
    kpti_out_wrote(&w->out, PUT(at, "\"}}"));
}

/* Threads stand in the viewer as they came: the first one is mostly the main thread. */
static void put_sort_index(kpti_chrome *w, uint64_t tid, uint32_t index)
{
    char *at = PUT(kpti_out_room(&w->out, KPTI_CHROME_MOST_REST), ",\n");
    at = put_metadata_head(w, at, "thread_sort_index", tid);
    at = kpti_put_u64(PUT(at, "\"sort_index\":"), index);
    kpti_out_wrote(&w->out, PUT(at, "}}"));
}

static kpt_status take_thread(kpti_chrome *w, const kpt_thread *thread)
{
    char made_up[32];
    uint64_t tid = thread->os_tid ? thread->os_tid : FIRST_MADE_UP_TID + (uint64_t)thread->index;
    kpt_str name = thread->name;
    kpt_status status = kpti_chrome_add_thread(&w->threads, thread->index, w->pid, tid);
    if (status != KPT_OK) return status;
    if (!name.size) {
        (void)snprintf(made_up, sizeof made_up, "thread %llu", (unsigned long long)tid);
        name = kpt_str_of(made_up);
    }
    put_text(w, ",\n");
    put_metadata_name(w, "thread_name", tid, name);
    put_sort_index(w, tid, thread->index);
    return KPT_OK;
}

/* --- batches ---------------------------------------------------------------------------------- */

static kpt_status take_batch(kpti_chrome *w, const kpt_batch *batch)
{
    kpt_status status = KPT_OK;
    if (!kpti_chrome_can_read(batch)) return KPT_E_SIZE;
    for (uint32_t i = 0; i < batch->name_count && status == KPT_OK; i++)
        status = take_name(w, kpti_chrome_record(batch->names, batch->name_stride, i));
    for (uint32_t i = 0; i < batch->thread_count && status == KPT_OK; i++)
        status = take_thread(w, kpti_chrome_record(batch->threads, batch->thread_stride, i));
    for (uint32_t i = 0; i < batch->activity_count && status == KPT_OK; i++) {
        const kpt_activity *a = kpti_chrome_record(batch->activities, batch->activity_stride, i);
        if (a->phase == KPT_PHASE_COMPLETE)
            put_activity(w, a);
        else
            status = KPT_E_UNSUPPORTED;
    }
    if (status == KPT_OK && kpti_out_error(&w->out)) status = KPT_E_IO;
    return status;
}

kpt_status kpti_chrome_batch(void *writer, const kpt_batch *batch)
{
    kpti_chrome *w = writer;
    if (w->status == KPT_OK) w->status = take_batch(w, batch);
    return w->status;
}

/* --- the beginning and the end ---------------------------------------------------------------- */

static kpt_status describe(kpti_chrome_result *result, kpt_status status, int os_error,
                           const char *path)
{
    result->os_error = status == KPT_E_IO ? os_error : 0;
    if (status == KPT_E_IO)
        (void)snprintf(result->text, sizeof result->text, "%.180s: %s", path, strerror(os_error));
    else if (status == KPT_E_MEMORY)
        (void)snprintf(result->text, sizeof result->text, "no memory to write the trace");
    else if (status == KPT_E_UNSUPPORTED)
        (void)snprintf(result->text, sizeof result->text,
                       "Chrome JSON is written from complete activities: ask for another order");
    else if (status != KPT_OK)
        (void)snprintf(result->text, sizeof result->text, "the delivery ended early: %s",
                       kpt_status_name(status));
    return status;
}

static void put_string(kpti_chrome *w, kpt_str text)
{
    char *at = kpti_out_room(&w->out, KPTI_OUT_BUFFER_BYTES / 2);
    at = kpti_chrome_escape(PUT(at, "\""), text);
    kpti_out_wrote(&w->out, PUT(at, "\""));
}

static void put_head(kpti_chrome *w, const kpti_chrome_options *options)
{
    char *at;
    put_text(w, "{\"schemaVersion\":1,\"deviceProperties\":[],\"with_stack\":1,"
                "\"kpytrace\":{\"version\":");
    put_string(w, options->version);
    put_text(w, "},\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":");
    at = kpti_out_room(&w->out, KPTI_CHROME_MOST_REST);
    kpti_out_wrote(&w->out, kpti_put_i64(at, w->events.base_ns));
    put_text(w, ",\"traceEvents\":[\n");
    put_metadata_name(w, "process_name", 0,
                      options->process_name.size ? options->process_name : kpt_str_of("python"));
}

/* The counters of kpt_stats that a reader of the trace should know. */
static const struct counter {
    const char *name;
    size_t offset;
} counters[] = {
    {"events", offsetof(kpt_stats, events)},
    {"events dropped", offsetof(kpt_stats, events_dropped)},
    {"events repaired", offsetof(kpt_stats, events_repaired)},
    {"events filtered", offsetof(kpt_stats, events_filtered)},
    {"threads", offsetof(kpt_stats, threads)},
    {"threads unreached", offsetof(kpt_stats, threads_unreached)},
    {"functions disabled", offsetof(kpt_stats, functions_disabled)},
};
enum { COUNTERS = sizeof counters / sizeof counters[0] };

static void put_tail(kpti_chrome *w, const kpt_stats *stats)
{
    char line[KPTI_JSON_MOST_NUMBER + 64];
    (void)snprintf(line, sizeof line, "\n],\"otherData\":{\"calls\":%llu",
                   (unsigned long long)w->events.next_index);
    put_text(w, line);
    for (int i = 0; stats && i < COUNTERS; i++) {
        uint64_t value;
        memcpy(&value, (const char *)stats + counters[i].offset, sizeof value);
        (void)snprintf(line, sizeof line, ",\"%s\":%llu", counters[i].name,
                       (unsigned long long)value);
        put_text(w, line);
    }
    put_text(w, "},\"traceName\":");
    put_string(w, (kpt_str){w->trace_name, w->trace_name_bytes});
    put_text(w, "}\n");
}

static void free_writer(kpti_chrome *w)
{
    kpti_heap heap = w->heap;
    kpti_fragments_free(&w->names);
    kpti_fragments_free(&w->threads);
    kpti_heap_give(&heap, w->trace_name, w->trace_name_bytes);
    kpti_heap_give(&heap, w, sizeof *w);
}

static kpti_chrome *make_writer(const char *path, const kpti_chrome_options *options)
{
    kpt_str name = options->trace_name.size ? options->trace_name : kpt_str_of(path);
    kpti_chrome *w = kpti_heap_take(&options->heap, sizeof *w);
    if (!w) return NULL;
    memset(w, 0, sizeof *w);
    w->heap = w->names.heap = w->threads.heap = w->out.heap = options->heap;
    w->out.interrupted = options->interrupted;
    w->out.interrupted_ctx = options->interrupted_ctx;
    w->pid = options->pid ? options->pid : (uint32_t)getpid();
    w->events.out = &w->out;
    w->events.base_ns = options->base_ns;
    w->out.wants_gzip = options->gzip;
    w->trace_name_bytes = (size_t)name.size;
    w->trace_name = kpti_heap_take(&w->heap, w->trace_name_bytes);
    if (!w->trace_name) {
        free_writer(w);
        return NULL;
    }
    memcpy(w->trace_name, name.data, w->trace_name_bytes);
    return w;
}

kpt_status kpti_chrome_open(const char *path, const kpti_chrome_options *options, kpti_chrome **out,
                            kpti_chrome_result *result)
{
    kpti_chrome *w;
    int error;
    memset(result, 0, sizeof *result);
    *out = NULL;
    if (!path || !*path) return describe(result, KPT_E_INVALID, 0, "");
    w = make_writer(path, options);
    if (!w) return describe(result, KPT_E_MEMORY, 0, path);
    error = kpti_out_open(&w->out, path);
    if (error) {
        free_writer(w);
        return describe(result, error == ENOMEM ? KPT_E_MEMORY : KPT_E_IO, error, path);
    }
    put_head(w, options);
    *out = w;
    return KPT_OK;
}

kpt_status kpti_chrome_close(kpti_chrome *writer, kpt_status status, const kpt_stats *stats,
                             kpti_chrome_result *result)
{
    int error;
    memset(result, 0, sizeof *result);
    if (writer->status != KPT_OK) status = writer->status; /* what the delivery then passed on */
    if (status == KPT_OK) put_tail(writer, stats);
    error = kpti_out_close(&writer->out, status == KPT_OK);
    if (error && (status == KPT_OK || status == KPT_E_IO)) status = KPT_E_IO;
    result->activities = writer->events.next_index;
    result->names = writer->names.count;
    result->threads = writer->threads.count;
    result->bytes = writer->out.written;
    (void)describe(result, status, error, writer->out.place.path);
    free_writer(writer);
    return status;
}
