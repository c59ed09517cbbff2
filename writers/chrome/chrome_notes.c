#include "writers/chrome/chrome_notes.h"

#include "core/base/u64_map.h"
#include "writers/chrome/chrome_events.h"

#define PUT KPTI_PUT

/* In a flow, an arrow leads to every note except the first, and an arrow leads on from every note except the
 * last. */
enum { LED_TO = 1 << 0, LEADS_ON = 1 << 1 };

/* --- flows ------------------------------------------------------------------------------------ */

static int may_flow(const kpti_note *note)
{
    return note->flow && (note->what == KPTI_NOTE_MARK || note->what == KPTI_NOTE_BEGIN);
}

/* In the order of numbers, which is time order; the delivery's order is another. */
static kpt_status find_roles(kpti_chrome_notes *n, kpti_u64_map *last_of_flow)
{
    const kpti_notes *notes = n->writer->notes;
    uint32_t first = kpti_notes_first(notes);
    for (uint32_t i = 0; i < notes->count; i++) {
        const kpti_note *note = kpti_notes_get(notes, first + i);
        uint32_t *last;
        if (!may_flow(note)) continue;
        last = kpti_u64_map_at(last_of_flow, note->flow - 1);
        if (!last) return KPT_E_MEMORY;
        if (*last) n->flow_roles[*last - first] |= LEADS_ON;
        if (*last) n->flow_roles[i] |= LED_TO;
        *last = first + i;
    }
    return KPT_OK;
}

kpt_status kpti_chrome_notes_init(kpti_chrome_notes *n, kpti_writer *writer)
{
    kpti_u64_map last_of_flow = {.heap = writer->heap};
    kpt_status status = kpti_spans_init(&n->spans, writer);
    n->writer = writer;
    if (status != KPT_OK || !writer->notes->count) return status;
    n->flow_roles = kpti_heap_take(&writer->heap, writer->notes->count);
    if (!n->flow_roles) return KPT_E_MEMORY;
    memset(n->flow_roles, 0, writer->notes->count);
    status = find_roles(n, &last_of_flow);
    kpti_u64_map_free(&last_of_flow);
    return status;
}

/* --- events ----------------------------------------------------------------------------------- */

static void put_text(kpti_chrome_notes *n, const char *text)
{
    kpti_out_put(&n->writer->out, text, strlen(text));
}

/* Writes an event up to its time. */
static void put_head(kpti_chrome_notes *n, const char *phase, kpt_str name, kpti_fragment thread,
                     int64_t ns)
{
    char *at = kpti_out_reserve(&n->writer->out,
                                KPTI_CHROME_MAX_NAME * KPTI_JSON_MAX_GROWTH + KPTI_CHROME_MAX_REST);
    at = PUT(at, ",\n{\"ph\":\"");
    *at++ = *phase;
    at = kpti_chrome_escape(PUT(at, "\",\"cat\":\"user_annotation\",\"name\":\""), name);
    at = kpti_fragment_put(at, thread);
    kpti_out_wrote(&n->writer->out, kpti_put_us_between(at, n->writer->base_ns, ns));
}

/* Writes the user's arguments and FLAG, which begins with a comma. */
static void put_args(kpti_chrome_notes *n, const kpti_note *note, const char *flag)
{
    put_text(n, ",\"args\":{");
    kpti_out_put(&n->writer->out, note->args.data, (size_t)note->args.size);
    put_text(n, note->args.size || !*flag ? flag : flag + 1);
    put_text(n, "}}");
}

static void put_number(kpti_chrome_notes *n, const char *key, uint64_t value)
{
    put_text(n, key);
    kpti_out_wrote(&n->writer->out,
                   kpti_put_u64(kpti_out_reserve(&n->writer->out, KPTI_JSON_MAX_NUMBER), value));
}

static void put_flow(kpti_chrome_notes *n, const kpti_note *note, uint32_t number,
                     kpti_fragment thread, int64_t ns)
{
    int role = n->flow_roles[number - kpti_notes_first(n->writer->notes)];
    if (!role) return;
    put_head(n,
             role == LEADS_ON ? "s"
             : role == LED_TO ? "f"
                              : "t",
             kpt_str_of("flow"), thread, ns);
    put_number(n, ",\"id\":", kpti_id_in_file(n->writer, note->flow));
    put_text(n, role == LED_TO ? ",\"bp\":\"e\"}" : "}");
}

static void put_mark(kpti_chrome_notes *n, const kpti_note *note, kpti_fragment thread, int64_t ns)
{
    put_head(n, "i", note->name, thread, ns);
    put_text(n, ",\"s\":\"t\"");
    put_args(n, note, "");
}

static void put_counter(kpti_chrome_notes *n, const kpti_note *note, kpti_fragment thread,
                        int64_t ns)
{
    char *at;
    put_head(n, "C", note->name, thread, ns);
    put_text(n, ",\"args\":{\"value\":");
    at = kpti_out_reserve(&n->writer->out, KPTI_JSON_MAX_NUMBER);
    kpti_out_wrote(&n->writer->out, kpti_put_double(at, note->value));
    put_text(n, "}}");
}

static void put_frame(kpti_chrome_notes *n, uint32_t begin, kpti_fragment thread, int64_t end_ns)
{
    const kpti_note *note = kpti_notes_get(n->writer->notes, begin);
    int64_t start_ns = kpti_spans_ns(&n->spans, begin);
    char *at;
    put_head(n, "X", note->name, thread, start_ns);
    at = PUT(kpti_out_reserve(&n->writer->out, KPTI_CHROME_MAX_REST), ",\"dur\":");
    kpti_out_wrote(&n->writer->out, kpti_put_us_between(at, start_ns, end_ns));
    put_args(n, note, "");
    put_flow(n, note, begin, thread, start_ns);
    kpti_spans_written(&n->spans, begin);
}

/* --- points ----------------------------------------------------------------------------------- */

kpt_status kpti_chrome_notes_take(kpti_chrome_notes *n, const kpt_activity *point,
                                  const kpti_note *note, kpti_fragment thread)
{
    uint32_t begin;
    int is_frame;
    switch (note->what) {
    case KPTI_NOTE_BEGIN:
        return kpti_spans_begin(&n->spans, point, &is_frame);
    case KPTI_NOTE_END:
        begin = kpti_spans_end(&n->spans, point, note);
        if (!begin) kpti_spans_forget(&n->spans, point->thread, note->partner);
        /* Spans that cross it are loose. */
        while (begin && kpti_spans_pop(&n->spans, point->thread) != begin) {
        }
        if (begin) put_frame(n, begin, thread, point->start_ns);
        return KPT_OK;
    case KPTI_NOTE_MARK:
        put_mark(n, note, thread, point->start_ns);
        put_flow(n, note, (uint32_t)point->value0, thread, point->start_ns);
        break;
    case KPTI_NOTE_COUNTER:
        put_counter(n, note, thread, point->start_ns);
        break;
    default:
        break;
    }
    kpti_spans_came(&n->spans, point);
    return KPT_OK;
}

/* --- the remaining notes ------------------------------------------------------------------------ */

static kpti_fragment thread_text(const kpti_chrome_notes *n, char *text, uint64_t tid)
{
    char *at = kpti_put_u64(PUT(text, "\",\"pid\":"), n->writer->pid);
    at = PUT(kpti_put_u64(PUT(at, ",\"tid\":"), tid), ",\"ts\":");
    return (kpti_fragment){text, (uint32_t)(at - text), 0};
}

static void put_async(kpti_chrome_notes *n, const kpti_loose *span, kpti_fragment start,
                      kpti_fragment end)
{
    const char *flag = "";
    if (span->stopped) flag = ",\"ended by stop\":true";
    if (span->began_before) flag = ",\"began before\":true";
    put_head(n, "b", span->note->name, start, span->start_ns);
    put_number(n, ",\"id\":", kpti_id_in_file(n->writer, span->number));
    put_args(n, span->note, flag);
    put_head(n, "e", span->note->name, end, span->end_ns);
    put_number(n, ",\"id\":", kpti_id_in_file(n->writer, span->number));
    put_text(n, "}");
}

void kpti_chrome_notes_rest(kpti_chrome_notes *n)
{
    char start_text[4 * KPTI_FRAGMENT_STEP] = "";
    char end_text[4 * KPTI_FRAGMENT_STEP] = "";
    uint32_t number = 0;
    kpti_loose loose;
    while (kpti_spans_next(&n->spans, n->writer, &number, &loose)) {
        kpti_fragment start = thread_text(n, start_text, loose.start_tid);
        if (loose.note->what == KPTI_NOTE_MARK)
            put_mark(n, loose.note, start, loose.start_ns);
        else if (loose.note->what == KPTI_NOTE_COUNTER)
            put_counter(n, loose.note, start, loose.start_ns);
        else
            put_async(n, &loose, start, thread_text(n, end_text, loose.end_tid));
        put_flow(n, loose.note, number, start, loose.start_ns);
    }
}

void kpti_chrome_notes_free(kpti_chrome_notes *n)
{
    if (n->flow_roles) kpti_heap_give(&n->spans.heap, n->flow_roles, n->writer->notes->count);
    n->flow_roles = NULL;
    if (n->spans.notes) kpti_spans_free(&n->spans);
}
