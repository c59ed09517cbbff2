/* chrome_json.c: Chrome trace JSON, with the fields that Kineto writes for Python calls: for Perfetto,
 * chrome://tracing, HTA, TensorBoard. The output is strict JSON, whatever bytes names have.
 *
 * Names are escaped once, when they are delivered. A call is then a few copies and five numbers, formatted with
 * integer arithmetic. Times are microseconds with three decimals since base_ns, which is baseTimeNanoseconds in
 * the header: viewers read times as doubles, which cannot hold today's Unix time to the nanosecond. Any order
 * with complete activities works; KPT_ORDER_THREAD is the cheapest. */
#include "writers/chrome/chrome_json.h"

#include "writers/chrome/chrome_events.h"
#include "writers/chrome/chrome_gpu.h"
#include "writers/chrome/chrome_notes.h"
#include "writers/chrome/chrome_operators.h"
#include "writers/chrome/chrome_tasks.h"
#include "writers/format/format.h"
#include "writers/format/stats_text.h"

typedef struct chrome {
    kpti_writer base;
    kpti_chrome_events events;
    /* escaped; the note is the first line, or the scope of an operator; inputs of operators as JSON */
    kpti_fragments names;
    kpti_fragments
        qualnames; /* the argument with the qualified name, where it is not that of the function */
    kpti_fragments threads; /* text between the name's end and the start time */
    kpti_chrome_notes notes;
    kpti_chrome_tasks tasks;
    kpti_chrome_node node;
    int is_compact;
    uint64_t tasks_without; /* tasks without a track, in processes that have ended */
    kpti_chrome_gpu gpu;    /* of all processes */
} chrome;

#define PUT KPTI_PUT

/* Longer ones are cut. */
enum { MAX_QUALNAME = 512 };

/* Writes the arguments that few calls have. */
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
    if (a->flags & KPT_ACTIVITY_CONTINUED) at = PUT(at, ",\"continued\":true");
    return at;
}

static void put_operator(chrome *w, const kpt_activity *activity, kpti_fragment name,
                         kpti_fragment thread)
{
    const kpti_fragment none = {NULL, 0, 0};
    char rare[KPTI_CHROME_MAX_REST];
    kpt_activity a = *activity;
    const kpti_fragment inputs = a.line ? kpti_fragments_get(&w->names, a.line, none) : none;
    const char *end;
    a.line = 0; /* of an operator, the index of its inputs */
    end = put_rare_args(rare, &a, 0);
    kpti_chrome_node_take(&w->node, &a);
    kpti_chrome_put_operator(
        &w->events, w->base.operators, &a,
        (kpti_chrome_operator){name, thread, {rare, (uint32_t)(end - rare), 0}, inputs, 0});
}

static kpt_status take_call(kpti_writer *writer, const kpt_activity *a)
{
    chrome *w = (chrome *)writer;
    kpti_fragment name = kpti_fragments_get(&w->names, a->name, kpti_chrome_no_name);
    kpti_fragment thread = kpti_fragments_get(&w->threads, a->thread, kpti_chrome_no_thread);
    const kpti_fragment none = {NULL, 0, 0};
    kpti_fragment more;
    char rare[KPTI_CHROME_MAX_REST * 2 + MAX_QUALNAME * KPTI_JSON_MAX_GROWTH];
    if (kpti_chrome_is_operator(a)) {
        put_operator(w, a, name, thread);
        return KPT_OK;
    }
    more = kpti_fragments_get(&w->qualnames, a->name, none);
    if (a->flags || a->kind == KPT_KIND_GC || (a->line && a->line != name.note)) {
        char *end = put_rare_args(kpti_fragment_put(rare, more), a, name.note);
        more = (kpti_fragment){rare, (uint32_t)(end - rare), 0};
    }
    if (w->is_compact)
        kpti_chrome_put_compact(&w->events, a, name, thread, more);
    else
        kpti_chrome_put(&w->events, a, name, thread, more);
    return kpti_chrome_tasks_call(&w->tasks, a, thread.note);
}

/* --- names and threads ------------------------------------------------------------------------ */

static void put_text(chrome *w, const char *text)
{
    kpti_out_put(&w->base.out, text, strlen(text));
}

static kpt_status add_qualname(chrome *w, const kpt_name *name)
{
    kpt_str text = kpti_function_name(name);
    char *begin;
    char *at;
    if (!name->file.size || text.size == name->function.size) return KPT_OK;
    if (text.size > MAX_QUALNAME) text.size = MAX_QUALNAME;
    begin = kpti_fragments_reserve(&w->qualnames, kpti_chrome_reserve(text) + KPTI_CHROME_MAX_REST);
    if (!begin) return KPT_E_MEMORY;
    at = kpti_chrome_escape(PUT(begin, ",\"qualified name\":\""), text);
    at = PUT(at, "\"");
    return kpti_fragments_set(&w->qualnames, name->index, begin, (size_t)(at - begin), 0);
}

static kpt_status take_name(kpti_writer *writer, const kpt_name *name)
{
    chrome *w = (chrome *)writer;
    kpt_status status;
    if (name->flags & KPT_NAME_INPUTS) return kpti_chrome_add_inputs(&w->names, name);
    status = w->is_compact ? KPT_OK : add_qualname(w, name);
    if (status != KPT_OK) return status;
    /* Only Python functions have a line, and only operators have a scope. */
    return kpti_chrome_add_name(&w->names, name->index,
                                w->is_compact ? kpti_chrome_short_name(name)
                                              : kpti_shown_name(name),
                                name->first_line + name->scope);
}

static char *put_metadata_head(const chrome *w, char *at, const char *what, uint64_t tid)
{
    at = kpti_chrome_escape(PUT(at, "{\"ph\":\"M\",\"name\":\""), kpt_str_of(what));
    at = kpti_put_u64(PUT(at, "\",\"pid\":"), w->base.pid);
    at = kpti_put_u64(PUT(at, ",\"tid\":"), tid);
    return PUT(at, ",\"args\":{");
}

/* Writes a metadata event with a name. The caller has written the comma before it, if one is needed. */
static void put_metadata_name(chrome *w, const char *what, const char *key, uint64_t tid,
                              kpt_str name)
{
    char *at = kpti_out_reserve(&w->base.out, KPTI_OUT_BUFFER_BYTES / 2);
    at = put_metadata_head(w, at, what, tid);
    at = PUT(kpti_chrome_escape(PUT(at, "\""), kpt_str_of(key)), "\":\"");
    at = kpti_chrome_escape(at, name);
    kpti_out_wrote(&w->base.out, PUT(at, "\"}}"));
}

/* Viewers display threads and processes in the order of delivery; the first is usually the main one. */
static void put_sort_index(chrome *w, const char *what, uint64_t tid, uint32_t index)
{
    char *at = PUT(kpti_out_reserve(&w->base.out, KPTI_CHROME_MAX_REST), ",\n");
    at = put_metadata_head(w, at, what, tid);
    at = kpti_put_u64(PUT(at, "\"sort_index\":"), index);
    kpti_out_wrote(&w->base.out, PUT(at, "}}"));
}

static kpt_status take_thread(kpti_writer *writer, const kpt_thread *thread)
{
    chrome *w = (chrome *)writer;
    uint64_t tid = thread->os_tid;
    kpt_status status = kpti_chrome_add_thread(&w->threads, thread->index, w->base.pid, tid);
    if (status != KPT_OK) return status;
    put_text(w, ",\n");
    put_metadata_name(w, "thread_name", "name", tid, thread->name);
    put_sort_index(w, "thread_sort_index", tid, thread->index);
    return KPT_OK;
}

static kpt_status take_point(kpti_writer *writer, const kpt_activity *point, const kpti_note *note)
{
    chrome *w = (chrome *)writer;
    if (note->what == KPTI_NOTE_TASK) return kpti_chrome_tasks_point(&w->tasks, point);
    return kpti_chrome_notes_take(
        &w->notes, point, note,
        kpti_fragments_get(&w->threads, point->thread, kpti_chrome_no_thread));
}

/* --- the beginning and the end ---------------------------------------------------------------- */

static void put_string(chrome *w, kpt_str text)
{
    char *at = kpti_out_reserve(&w->base.out, KPTI_OUT_BUFFER_BYTES / 2);
    at = kpti_chrome_escape(PUT(at, "\""), text);
    kpti_out_wrote(&w->base.out, PUT(at, "\""));
}

static void put_head(chrome *w, const kpti_writer_options *options)
{
    char *at;
    put_text(w, "{\"schemaVersion\":1,\"with_stack\":1,\"kpytrace\":{\"version\":");
    put_string(w, options->version);
    put_text(w, "},\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":");
    at = kpti_out_reserve(&w->base.out, KPTI_CHROME_MAX_REST);
    kpti_out_wrote(&w->base.out, kpti_put_i64(at, w->events.base_ns));
    put_text(w, ",\"traceEvents\":[\n");
}

/* Writes the process's metadata, with commas as in put_metadata_name. */
static kpt_status begin_process(kpti_writer *writer, const kpti_writer_options *options)
{
    chrome *w = (chrome *)writer;
    if (writer->processes) put_text(w, ",\n");
    put_metadata_name(w, "process_name", "name", 0,
                      options->process_name.size ? options->process_name : kpt_str_of("python"));
    if (writer->processes) put_sort_index(w, "process_sort_index", 0, writer->processes);
    if (options->process_label.size) {
        put_text(w, ",\n");
        put_metadata_name(w, "process_labels", "labels", 0, options->process_label);
    }
    kpti_chrome_tasks_init(&w->tasks, writer);
    w->node = (kpti_chrome_node){0, 0, 0};
    return kpti_chrome_notes_init(&w->notes, writer);
}

static void put_tail(chrome *w, const kpt_stats *stats)
{
    const uint64_t without = w->tasks_without + w->tasks.tracks.without;
    char *at = kpti_out_reserve(&w->base.out, KPTI_STATS_MAX_TEXT + KPTI_CHROME_MAX_REST);
    at = kpti_put_u64(PUT(at, "\n],\"otherData\":{\"calls\":"), w->base.calls);
    kpti_out_wrote(&w->base.out, kpti_put_stats(at, stats));
    if (without) {
        at = kpti_out_reserve(&w->base.out, KPTI_CHROME_MAX_REST);
        at = kpti_put_u64(PUT(at, ",\"tasks without a track\":"), without);
        kpti_out_wrote(&w->base.out, at);
    }
    put_text(w, "}");
    kpti_chrome_gpu_tail(&w->gpu, &w->base);
    put_text(w, ",\"traceName\":");
    put_string(w, (kpt_str){w->base.trace_name, w->base.trace_name_bytes});
    put_text(w, "}\n");
}

static kpt_status begin(kpti_writer *writer, const kpti_writer_options *options)
{
    chrome *w = (chrome *)writer;
    w->names.heap = w->qualnames.heap = w->threads.heap = writer->heap;
    kpti_chrome_gpu_init(&w->gpu, &writer->heap);
    w->is_compact = options->is_compact;
    w->events = (kpti_chrome_events){.out = &writer->out, .base_ns = writer->base_ns};
    put_head(w, options);
    return begin_process(writer, options);
}

static kpt_status end(kpti_writer *writer, const kpt_stats *stats)
{
    chrome *w = (chrome *)writer;
    kpt_status status;
    kpti_chrome_notes_rest(&w->notes);
    kpti_chrome_put_links(writer, &w->threads);
    status = kpti_chrome_gpu_events(&w->gpu, writer);
    put_tail(w, stats);
    return status;
}

static void release_process(chrome *w)
{
    kpti_fragments_free(&w->names);
    kpti_fragments_free(&w->qualnames);
    kpti_fragments_free(&w->threads);
    kpti_chrome_notes_free(&w->notes);
    kpti_chrome_tasks_free(&w->tasks);
}

static void release(kpti_writer *writer)
{
    chrome *w = (chrome *)writer;
    release_process(w);
    kpti_chrome_gpu_free(&w->gpu);
}

static kpt_status end_process(kpti_writer *writer)
{
    chrome *w = (chrome *)writer;
    kpt_status status;
    kpti_chrome_notes_rest(&w->notes);
    kpti_chrome_put_links(writer, &w->threads);
    status = kpti_chrome_gpu_events(&w->gpu, writer);
    w->tasks_without += w->tasks.tracks.without;
    release_process(w);
    return status;
}

static const kpti_format_ops ops = {sizeof(chrome), begin,         take_name, take_thread,
                                    take_call,      take_point,    end,       release,
                                    end_process,    begin_process, NULL,      NULL};

const kpti_format kpti_format_chrome = {"Chrome JSON", ".json", KPT_ORDER_THREAD, &ops, 1, 1, 0};
