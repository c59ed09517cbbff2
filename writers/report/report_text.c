#include "writers/report/report_text.h"

#include "core/base/varint.h"
#include "writers/chrome/chrome_events.h"
#include "writers/format/qualified_name.h"
#include "writers/format/stats_text.h"

#define PUT KPTI_PUT

/* Most bytes written at once: two texts, each cut like a name. */
enum { TEXT_BYTES = 2 * KPTI_CHROME_MAX_NAME * KPTI_JSON_MAX_GROWTH + KPTI_CHROME_MAX_REST };
enum { HEAD_BYTES = 3 * KPTI_CHROME_MAX_NAME * KPTI_JSON_MAX_GROWTH + KPTI_CHROME_MAX_REST };

kpt_status kpti_report_begin_text(kpti_report *w, const kpti_writer_options *options)
{
    kpt_str process = options->process_name.size ? options->process_name : kpt_str_of("python");
    char *at;
    w->text = kpti_heap_take(&w->base.heap, TEXT_BYTES);
    w->head = kpti_heap_take(&w->base.heap, HEAD_BYTES);
    if (!w->text || !w->head) return KPT_E_MEMORY;
    at = kpti_chrome_escape(PUT(w->head, "{\"format\":1,\"version\":\""), options->version);
    at = kpti_chrome_escape(PUT(at, "\",\"name\":\""),
                            (kpt_str){w->base.trace_name, w->base.trace_name_bytes});
    at = kpti_chrome_escape(PUT(at, "\",\"process\":\""), process);
    at = kpti_put_u64(PUT(at, "\",\"pid\":"), w->base.pid);
    w->head_bytes = (size_t)(at - w->head);
    w->findings = options->findings;
    return KPT_OK;
}

void kpti_report_free_text(kpti_report *w)
{
    kpti_heap_give(&w->base.heap, w->text, TEXT_BYTES);
    kpti_heap_give(&w->base.heap, w->head, HEAD_BYTES);
}

/* --- names and threads ------------------------------------------------------------------------ */

kpt_status kpti_report_name(kpti_report *w, const kpt_name *name)
{
    char space[KPTI_MAX_QUALIFIED];
    const kpt_str shown = kpti_qualified_name(name, space);
    char *begin = kpti_fragments_reserve(&w->names, kpti_chrome_reserve(shown) +
                                                        kpti_chrome_reserve(name->file) +
                                                        KPTI_CHROME_MAX_REST);
    char *at;
    if (!begin) return KPT_E_MEMORY;
    *begin = '[';
    at = kpti_chrome_escape(PUT(kpti_put_u64(begin + 1, name->index), ",\""), shown);
    at = kpti_chrome_escape(PUT(at, "\",\""), name->file);
    at = PUT(kpti_put_u64(PUT(at, "\","), name->first_line), "]");
    return kpti_fragments_set(&w->names, name->index, begin, (size_t)(at - begin),
                              name->first_line);
}

kpt_status kpti_report_thread(kpti_report *w, const kpt_thread *thread)
{
    char *begin = kpti_fragments_reserve(&w->threads,
                                         kpti_chrome_reserve(thread->name) + KPTI_CHROME_MAX_REST);
    kpt_status status = kpti_array_reach(&w->base.heap, &w->track_states, &w->track_capacity,
                                         thread->index, sizeof *w->track_states);
    char *at;
    if (!begin || status != KPT_OK) return begin ? status : KPT_E_MEMORY;
    at = kpti_chrome_escape(kpti_put_varint(begin, thread->os_tid), thread->name);
    *at++ = 0;
    kpti_fragments_keep(&w->threads, (size_t)(at - begin));
    w->track_states[thread->index].thread = begin;
    return KPT_OK;
}

/* --- the JSON at the end ---------------------------------------------------------------------- */

void kpti_report_put(kpti_report *w, const char *end)
{
    kpti_packed_put(&w->packed, w->text, (size_t)(end - w->text));
}

void kpti_report_put_literal(kpti_report *w, const char *text)
{
    kpti_packed_put(&w->packed, text, strlen(text));
}

char *kpti_report_put_time(const kpti_report *w, char *at, int64_t ns)
{
    int64_t first_ns = w->base.first_ns == INT64_MAX ? 0 : w->base.first_ns;
    return kpti_put_i64(at, (int64_t)((uint64_t)ns - (uint64_t)first_ns));
}

static void put_names(kpti_report *w)
{
    const char *comma = "";
    kpti_report_put_literal(w, ",\"names\":[");
    for (uint32_t i = 0; i < w->names.capacity; i++) {
        if (!w->names.items[i].text) continue;
        kpti_report_put_literal(w, comma);
        kpti_packed_put(&w->packed, w->names.items[i].text, w->names.items[i].size);
        comma = ",\n";
    }
    kpti_report_put_literal(w, "]");
}

/* Writes the members of a track that a thread has. */
static void put_thread(kpti_report *w, const char *thread)
{
    uint64_t tid = 0;
    const char *name = thread ? kpti_read_varint(thread, &tid) : "unknown";
    kpti_report_put_literal(w, "\"name\":\"");
    kpti_report_put_literal(w, name);
    kpti_report_put_literal(w, "\"");
    if (!thread) return;
    kpti_report_put(w, kpti_put_u64(PUT(w->text, ",\"tid\":"), tid));
    if (kpti_is_greenlet_tid(tid)) kpti_report_put_literal(w, ",\"group\":\"Greenlets\"");
}

static void put_tracks(kpti_report *w)
{
    const char *comma = "{";
    kpti_report_put_literal(w, ",\"tracks\":[");
    for (uint32_t i = 0; i < w->track_capacity; i++) {
        const kpti_report_track *l = &w->track_states[i];
        char *at;
        if (!l->is_known) continue;
        kpti_report_put_literal(w, comma);
        put_thread(w, l->thread);
        at = kpti_put_u64(PUT(w->text, ",\"id\":"), i);
        at = kpti_put_u64(PUT(at, ",\"spans\":"), l->frames);
        at = kpti_report_put_time(w, PUT(at, ",\"start\":"), l->start_ns);
        kpti_report_put(w, PUT(at, "}"));
        comma = ",\n{";
    }
    kpti_report_put_literal(w, "]");
}

/* Writes [number, name, arguments as a text of JSON, value, flow]. Ends with a known begin are left out. */
static void put_notes(kpti_report *w)
{
    const kpti_notes *notes = w->base.notes;
    const char *comma = "[";
    kpti_report_put_literal(w, ",\"notes\":[");
    for (uint32_t i = 0; i < notes->count; i++) {
        uint32_t number = kpti_notes_first(notes) + i;
        const kpti_note *note = kpti_notes_get(notes, number);
        char *at;
        if (note->what == KPTI_NOTE_END && kpti_notes_get(notes, note->partner)) continue;
        kpti_report_put_literal(w, comma);
        at = kpti_chrome_escape(PUT(kpti_put_u64(w->text, number), ",\""), note->name);
        at = PUT(kpti_chrome_escape(PUT(at, "\",\""), note->args), "\",");
        at = PUT(kpti_put_double(at, note->value), ",\"");
        kpti_report_put(w, PUT(kpti_put_u64(at, note->flow), "\"]"));
        comma = ",\n[";
    }
    kpti_report_put_literal(w, "]");
}

/* Writes the notes beside the calls: [note, what, start, end, thread at the start, thread at the end, flags]. */
static void put_loose(kpti_report *w)
{
    const char *comma = "[";
    uint32_t number = 0;
    kpti_loose loose;
    kpti_report_put_literal(w, ",\"loose\":[");
    while (kpti_spans_next(&w->frames.spans, &w->base, &number, &loose)) {
        uint32_t flags = (loose.began_before ? KPT_ACTIVITY_BEGAN_BEFORE : 0U) |
                         (loose.stopped ? KPT_ACTIVITY_ENDED_BY_STOP : 0U);
        char *at;
        kpti_report_put_literal(w, comma);
        at = PUT(kpti_put_u64(w->text, loose.number), ",");
        at = PUT(kpti_put_u64(at, loose.note->what), ",");
        at = PUT(kpti_report_put_time(w, at, loose.start_ns), ",");
        at = PUT(kpti_report_put_time(w, at, loose.end_ns), ",");
        at = PUT(kpti_put_u64(at, loose.start_tid), ",");
        at = PUT(kpti_put_u64(at, loose.end_tid), ",");
        kpti_report_put(w, PUT(kpti_put_u64(at, flags), "]"));
        comma = ",\n[";
    }
    kpti_report_put_literal(w, "]");
}

void kpti_report_put_text(kpti_report *w, const kpt_stats *stats)
{
    int is_empty = w->base.first_ns == INT64_MAX;
    char *at;
    kpti_packed_put(&w->packed, w->head, w->head_bytes);
    at = kpti_put_i64(PUT(w->text, ",\"first_ns\":\""), is_empty ? 0 : w->base.first_ns);
    at = kpti_report_put_time(w, PUT(at, "\",\"end\":"), is_empty ? 0 : w->base.last_ns);
    at = kpti_put_u64(PUT(at, ",\"stats\":{\"calls\":"), w->base.calls);
    kpti_report_put(w, PUT(kpti_put_stats(at, stats), "}"));
    if (w->findings.size) kpti_report_put_literal(w, ",\"findings\":");
    kpti_packed_put(&w->packed, w->findings.data, (size_t)w->findings.size);
    put_names(w);
    put_tracks(w);
    put_notes(w);
    put_loose(w);
}
