#include "writers/report/report_gpu.h"

#include <stdio.h>

#include "writers/chrome/chrome_events.h"
#include "writers/gpu/gpu_index.h"
#include "writers/gpu/gpu_summary.h"

#define PUT KPTI_PUT

/* Most bytes written at once: a name, a frame with its file and function, and a forward function. */
enum { TEXT_BYTES = 4 * KPTI_CHROME_MAX_NAME * KPTI_JSON_MAX_GROWTH + KPTI_CHROME_MAX_REST };

/* A section that is being written. */
typedef struct part {
    kpti_report *report;
    kpti_packed packed;
    char *text; /* TEXT_BYTES bytes */
    kpti_gpu_index index;
} part;

/* Each of them takes a pass over all events. */
enum { MAX_CALLERS = 1000 };

/* Threads that called CUDA, in the order of their first calls. */
typedef struct callers {
    uint64_t *os_tids;
    uint32_t capacity;
    uint32_t count;
    uint32_t others;  /* threads over the limit */
    int64_t first_ns; /* begin of the first call */
} callers;

static void put(part *p, const char *end)
{
    kpti_packed_put(&p->packed, p->text, (size_t)(end - p->text));
}

static void put_literal(part *p, const char *text)
{
    kpti_packed_put(&p->packed, text, strlen(text));
}

/* Writes a name like "GPU 0 NVIDIA H200: idle 0.3% of 146.9 ms", and the head up to the tracks. */
static void put_head(part *p, const kpti_gpu_busy *busy)
{
    const kpt_gpu_device *known = kpti_gpu_device_of(p->report->base.gpu, busy->device);
    const double life_ns = (double)(busy->last_ns - busy->first_ns);
    const double idle_ns = life_ns - (double)busy->busy_ns;
    char rest[96];
    char *at = kpti_put_u64(PUT(p->text, "{\"process\":\"GPU "), busy->device);
    if (known) at = kpti_chrome_escape(PUT(at, " "), known->name);
    (void)snprintf(rest, sizeof rest, ": idle %.1f%% of %.3f ms\",\"first_ns\":\"",
                   life_ns > 0 ? 100 * idle_ns / life_ns : 0.0, life_ns / 1e6);
    at = kpti_put_i64(stpcpy(at, rest), busy->first_ns);
    put(p, PUT(at, "\",\"tracks\":["));
}

/* Returns whether an arrow begins or ends at the event. The event then gets a flow number. */
static int has_arrow(part *p, const kpt_gpu_event *e)
{
    return kpti_gpu_arrow_leaves(&p->index, e) || kpti_gpu_arrow_comes(&p->index, e);
}

/* Writes the Python function of the forward operator, for work of autograd. */
static char *put_forward(part *p, char *at, const kpt_gpu_event *e)
{
    kpti_operator_walk *walk = p->report->base.operators;
    const kpti_gpu_launch *launch = walk ? kpti_gpu_launch_of(&walk->launches, e) : NULL;
    if (!launch || !launch->is_backward) return at;
    at = PUT(at, ",\"forward at\":\"");
    at = launch->forward.size ? kpti_chrome_escape(at, launch->forward) : PUT(at, "(not recorded)");
    return PUT(at, "\"");
}

static void put_span(part *p, const kpti_gpu_entry *entry, int64_t first_ns, const char *comma)
{
    const kpti_gpu_log *log = p->report->base.gpu;
    const kpt_gpu_event *e = &entry->event;
    const kpti_gpu_node *frame = kpti_gpu_own_frame(log, entry->stack);
    char *at = kpti_chrome_escape(PUT(stpcpy(p->text, comma), "[\""), e->name);
    at = kpti_put_i64(PUT(at, "\","), e->start_ns - first_ns);
    at = kpti_put_i64(PUT(at, ","), e->end_ns - first_ns);
    at = kpti_put_u64(PUT(at, ",{\"correlation\":"), e->correlation);
    if (e->bytes) at = kpti_put_u64(PUT(at, ",\"bytes\":"), e->bytes);
    for (int i = 0; e->kind == KPT_GPU_KERNEL && i < 6; i++) {
        at = stpcpy(at, i == 0 ? ",\"grid\":[" : i == 3 ? "],\"block\":[" : ",");
        at = kpti_put_u64(at, i < 3 ? e->grid[i] : e->block[i - 3]);
        if (i == 5) at = PUT(at, "]");
    }
    if (frame) {
        at = kpti_chrome_escape(PUT(at, ",\"launched at\":\""), kpti_gpu_text(log, frame->file));
        at = PUT(kpti_put_u64(PUT(at, "("), frame->line), "): ");
        at = PUT(kpti_chrome_escape(at, kpti_gpu_text(log, frame->function)), "\"");
    }
    at = put_forward(p, at, e);
    at = PUT(at, "}");
    if (has_arrow(p, e)) at = kpti_put_u64(PUT(at, ","), e->correlation);
    put(p, PUT(at, "]"));
}

/* Writes the spans of a stream's track, or, if TRACK is UINT32_MAX, the calls of a thread. */
static void put_spans(part *p, uint32_t track, uint64_t os_tid, int64_t first_ns)
{
    kpti_gpu_cursor cursor = {.log = p->report->base.gpu};
    const kpti_gpu_entry *entry;
    const char *comma = "";
    put_literal(p, "\"spans\":[");
    while ((entry = kpti_gpu_next(&cursor)) != NULL) {
        const kpt_gpu_event *e = &entry->event;
        if (kpti_gpu_track_of(&p->index, e) != track) continue;
        if (track == UINT32_MAX && (!kpti_gpu_is_call(e->kind) || e->os_tid != os_tid)) continue;
        put_span(p, entry, first_ns, comma);
        comma = ",\n";
    }
    put_literal(p, "]}");
}

static kpt_status begin_section(part *p)
{
    static const char head[] = "<script type=\"text/plain\" class=\"section\" data-kind=\"tracks\" "
                               "data-pack=\"gzip\">";
    kpti_out_file *out = &p->report->base.out;
    p->packed = (kpti_packed){.out = out};
    if (kpti_packed_begin(&p->packed)) return KPT_E_MEMORY;
    kpti_out_put(out, head, sizeof head - 1);
    return KPT_OK;
}

static void end_section(part *p)
{
    put_literal(p, "]}");
    kpti_packed_end(&p->packed, 1);
    kpti_out_put(&p->report->base.out, "</script>\n", 10);
}

/* --- devices and threads ---------------------------------------------------------------------- */

/* Writes the activities of one stream. */
static void put_stream(part *p, uint32_t track, int64_t first_ns)
{
    const uint32_t stream = p->index.tracks[track].stream;
    const kpt_str name = kpti_gpu_name_of(p->report->base.gpu, KPT_GPU_NAMES_STREAM, stream);
    char *at = PUT(p->text, "{\"group\":\"streams\",\"name\":\"stream ");
    at = kpti_put_i64(at, (int32_t)stream);
    if (name.size) at = kpti_chrome_escape(PUT(at, " "), name);
    put(p, PUT(at, "\","));
    put_spans(p, track, 0, first_ns);
}

/* Writes one device as a section of its own, since a section has one process. */
static kpt_status put_device(part *p, const kpti_gpu_busy *busy)
{
    const char *comma = "\n";
    kpt_status status = begin_section(p);
    if (status != KPT_OK) return status;
    put_head(p, busy);
    for (uint32_t i = 0; i < p->index.track_count; i++) {
        if (p->index.tracks[i].device != busy->device) continue;
        put_literal(p, comma);
        put_stream(p, i, busy->first_ns);
        comma = ",\n";
    }
    end_section(p);
    return KPT_OK;
}

static kpt_status find_callers(const part *p, callers *found)
{
    kpti_gpu_cursor cursor = {.log = p->report->base.gpu};
    kpti_u64_map known = {.heap = p->report->base.heap};
    const kpti_gpu_entry *entry;
    kpt_status status = KPT_OK;
    found->first_ns = INT64_MAX;
    while (status == KPT_OK && (entry = kpti_gpu_next(&cursor)) != NULL) {
        const kpt_gpu_event *e = &entry->event;
        uint32_t *is_known;
        if (!kpti_gpu_is_call(e->kind)) continue;
        /* the map cannot hold UINT64_MAX */
        is_known = kpti_u64_map_at(&known, e->os_tid & INT64_MAX);
        if (e->start_ns < found->first_ns) found->first_ns = e->start_ns;
        if (is_known && *is_known) continue;
        if (is_known && found->count == MAX_CALLERS) {
            *is_known = 1;
            found->others++;
            continue;
        }
        status = !is_known ? KPT_E_MEMORY
                           : kpti_array_reach(&known.heap, &found->os_tids, &found->capacity,
                                              found->count, sizeof *found->os_tids);
        if (status != KPT_OK) continue;
        found->os_tids[found->count++] = e->os_tid;
        *is_known = 1;
    }
    kpti_u64_map_free(&known);
    return status;
}

/* Writes the CUDA calls by thread. A section without a process name belongs to the trace's own process. */
static kpt_status put_callers(part *p)
{
    callers found = {.os_tids = NULL};
    kpt_status status = find_callers(p, &found);
    if (status == KPT_OK && found.count) status = begin_section(p);
    if (status == KPT_OK && found.count) {
        char *at = kpti_put_i64(PUT(p->text, "{\"first_ns\":\""), found.first_ns);
        put(p, PUT(at, "\",\"tracks\":[\n"));
        for (uint32_t i = 0; i < found.count; i++) {
            at = stpcpy(p->text, i ? ",\n{\"group\":\"" : "{\"group\":\"");
            at = kpti_put_u64(PUT(at, "CUDA calls\",\"name\":\"thread "), found.os_tids[i]);
            at = kpti_put_u64(PUT(at, "\",\"tid\":"), found.os_tids[i]);
            put(p, PUT(at, ","));
            put_spans(p, UINT32_MAX, found.os_tids[i], found.first_ns);
        }
        if (found.others) {
            at = kpti_put_u64(
                PUT(p->text, ",\n{\"group\":\"CUDA calls\",\"name\":\"not shown: calls of "),
                found.others);
            put(p, PUT(at, " more threads\",\"spans\":[]}"));
        }
        end_section(p);
    }
    kpti_heap_give(&p->report->base.heap, found.os_tids, found.capacity * sizeof *found.os_tids);
    return status;
}

kpt_status kpti_report_gpu(kpti_report *w)
{
    kpti_gpu_report sums = {.heap = w->base.heap};
    part p = {.report = w, .index = {.heap = w->base.heap}};
    kpt_status status;
    if (!w->base.gpu->events) return KPT_OK;
    p.text = kpti_heap_take(&w->base.heap, TEXT_BYTES);
    status = p.text ? kpti_gpu_report_make(&sums, w->base.gpu, NULL) : KPT_E_MEMORY;
    if (status == KPT_OK) status = kpti_gpu_index_make(&p.index, w->base.gpu);
    if (status == KPT_OK) status = put_callers(&p);
    for (uint32_t i = 0; status == KPT_OK && i < sums.device_count; i++)
        status = put_device(&p, &sums.devices[i]);
    kpti_gpu_index_free(&p.index);
    kpti_gpu_report_free(&sums);
    kpti_heap_give(&w->base.heap, p.text, TEXT_BYTES);
    return status;
}
