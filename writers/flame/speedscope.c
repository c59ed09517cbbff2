/* speedscope.c: speedscope's own format: an "evented" profile per thread, in nanoseconds since base_ns. A
 * profile must be contiguous in the file, but calls are delivered by time, with all threads mixed. So each
 * thread's events are stored, in six to ten bytes per call, and written at the end. */
#include "writers/flame/speedscope.h"

#include "writers/chrome/chrome_events.h"
#include "writers/encode/proto.h"
#include "writers/encode/string_table.h"
#include "writers/format/nested_frames.h"

/* There may be many threads, most of them short, so blocks start small. */
enum { FIRST_BLOCK_BYTES = 48, MAX_BLOCK_BYTES = 64 * 1024 };

/* An event is a number: the time since the last event, with the kind of event in the lowest bits. If a frame
 * opens, the frame's number follows. */
enum { IS_CLOSE = 0, IS_CALL = 1, IS_SPAN = 2, WHAT_BITS = 2 };
enum { MAX_EVENT = 2 * KPTI_MAX_VARINT };

typedef struct block {
    struct block *next;
    uint32_t capacity;
    uint32_t used;
    char bytes[];
} block;

typedef struct track_state {
    block *first;
    block *last;
    int64_t start_ns;
    int64_t last_ns;
    uint32_t depth;
    uint32_t most_depth;
} track_state;

typedef struct speedscope {
    kpti_writer base;
    kpti_frames frames;
    /* frames as objects; at the end, the note is the index of a name among them */
    kpti_fragments names;
    kpti_text_table spans;  /* frames after those of names */
    kpti_fragments threads; /* names, escaped */
    track_state *track_states;
    uint32_t track_capacity;
} speedscope;

#define PUT KPTI_PUT

/* Never overflows. */
static int64_t since_base(const speedscope *w, int64_t ns)
{
    return (int64_t)((uint64_t)ns - (uint64_t)w->base.base_ns);
}

/* --- storing events ---------------------------------------------------------------------------- */

static kpt_status add_block(speedscope *w, track_state *l)
{
    uint32_t bytes = l->last ? l->last->capacity * 2 : FIRST_BLOCK_BYTES;
    block *added;
    if (bytes > MAX_BLOCK_BYTES) bytes = MAX_BLOCK_BYTES;
    added = kpti_heap_take(&w->base.heap, sizeof *added + bytes);
    if (!added) return KPT_E_MEMORY;
    *added = (block){NULL, bytes, 0};
    *(l->last ? &l->last->next : &l->first) = added;
    l->last = added;
    return KPT_OK;
}

static kpt_status keep(speedscope *w, uint32_t thread, int64_t ns, uint32_t what, uint32_t number)
{
    kpt_status status = kpti_array_reach(&w->base.heap, &w->track_states, &w->track_capacity,
                                         thread, sizeof *w->track_states);
    track_state *l;
    char *at;
    if (status != KPT_OK) return status;
    l = &w->track_states[thread];
    if (!l->last || l->last->capacity - l->last->used < MAX_EVENT) {
        if (!l->last) l->start_ns = l->last_ns = ns;
        status = add_block(w, l);
        if (status != KPT_OK) return status;
    }
    if (ns < l->last_ns) ns = l->last_ns;
    at = l->last->bytes + l->last->used;
    at = kpti_put_varint(at, ((uint64_t)ns - (uint64_t)l->last_ns) << WHAT_BITS | what);
    if (what != IS_CLOSE) at = kpti_put_varint(at, number);
    l->last->used = (uint32_t)(at - l->last->bytes);
    l->last_ns = ns;
    return KPT_OK;
}

/* Writes {"name":"..."}, the frame of a span. */
static char *put_span(char *at, kpt_str text)
{
    return PUT(kpti_chrome_escape(PUT(at, "{\"name\":\""), text), "\"}");
}

static kpt_status open_frame(kpti_writer *writer, const kpt_activity *at, const kpti_note *span)
{
    speedscope *w = (speedscope *)writer;
    uint32_t name = at->name;
    kpt_status status = KPT_OK;
    track_state *l;
    if (span) status = kpti_text_table_at(&w->spans, span->name, put_span, &name);
    if (status == KPT_OK)
        status = keep(w, at->thread, at->start_ns, span ? IS_SPAN : IS_CALL, name);
    if (status != KPT_OK) return status;
    l = &w->track_states[at->thread];
    if (++l->depth > l->most_depth) l->most_depth = l->depth;
    return KPT_OK;
}

static kpt_status close_frame(kpti_writer *writer, uint32_t thread, int64_t ns,
                              const kpt_activity *call)
{
    speedscope *w = (speedscope *)writer;
    (void)call;
    if (thread >= w->track_capacity || !w->track_states[thread].depth) return KPT_OK;
    w->track_states[thread].depth--;
    return keep(w, thread, ns, IS_CLOSE, 0);
}

static const kpti_frame_ops frame_ops = {open_frame, close_frame};

/* --- names and threads ------------------------------------------------------------------------ */

static kpt_status take_name(kpti_writer *writer, const kpt_name *name)
{
    speedscope *w = (speedscope *)writer;
    kpt_str shown = kpti_shown_name(name);
    char *begin = kpti_fragments_reserve(&w->names, kpti_chrome_reserve(shown) +
                                                        kpti_chrome_reserve(name->file) +
                                                        KPTI_CHROME_MAX_REST);
    char *at;
    if (!begin) return KPT_E_MEMORY;
    at = PUT(kpti_chrome_escape(PUT(begin, "{\"name\":\""), shown), "\"");
    if (name->file.size) {
        at = PUT(kpti_chrome_escape(PUT(at, ",\"file\":\""), name->file), "\"");
        at = kpti_put_u64(PUT(at, ",\"line\":"), name->first_line);
    }
    at = PUT(at, "}");
    return kpti_fragments_set(&w->names, name->index, begin, (size_t)(at - begin), 0);
}

static kpt_status take_thread(kpti_writer *writer, const kpt_thread *thread)
{
    speedscope *w = (speedscope *)writer;
    return kpti_chrome_add_name(&w->threads, thread->index, thread->name, 0);
}

static kpt_status take_call(kpti_writer *writer, const kpt_activity *call)
{
    return kpti_frames_call(&((speedscope *)writer)->frames, call);
}

static kpt_status take_point(kpti_writer *writer, const kpt_activity *point, const kpti_note *note)
{
    return kpti_frames_point(&((speedscope *)writer)->frames, point, note);
}

/* --- the file --------------------------------------------------------------------------------- */

static void put_literal(speedscope *w, const char *text)
{
    kpti_out_put(&w->base.out, text, strlen(text));
}

static void put_string(speedscope *w, kpt_str text)
{
    char *at = kpti_out_reserve(&w->base.out, kpti_chrome_reserve(text) + KPTI_CHROME_MAX_REST);
    kpti_out_wrote(&w->base.out, kpti_chrome_escape(at, text));
}

/* Writes functions, then spans, then the frame for names that were not delivered. */
static void put_frames(speedscope *w)
{
    const char *comma = "";
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->names.capacity; i++) {
        if (!w->names.items[i].text) continue;
        w->names.items[i].note = count++;
        put_literal(w, comma);
        kpti_out_put(&w->base.out, w->names.items[i].text, w->names.items[i].size);
        comma = ",\n";
    }
    for (uint32_t i = 0; i < w->spans.texts.count; i++, comma = ",\n") {
        put_literal(w, comma);
        kpti_out_put(&w->base.out, w->spans.texts.items[i].text, w->spans.texts.items[i].size);
    }
    put_literal(w, comma);
    put_literal(w, "{\"name\":\"unknown\"}");
}

static uint32_t place_of(const speedscope *w, uint32_t what, uint32_t number)
{
    kpti_fragment unknown = {NULL, 0, w->names.count + w->spans.texts.count};
    if (what == IS_SPAN) return w->names.count + number;
    return kpti_fragments_get(&w->names, number, unknown).note;
}

static void put_event(speedscope *w, int is_first, char type, uint32_t frame, int64_t ns)
{
    char *at = kpti_out_reserve(&w->base.out, KPTI_CHROME_MAX_REST);
    at = is_first ? PUT(at, "\n{\"type\":\"") : PUT(at, ",\n{\"type\":\"");
    *at++ = type;
    at = kpti_put_u64(PUT(at, "\",\"frame\":"), frame);
    at = kpti_put_i64(PUT(at, ",\"at\":"), ns);
    kpti_out_wrote(&w->base.out, PUT(at, "}"));
}

static const char *read_varint(const char *at, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0;; shift += 7) {
        *value |= (uint64_t)(*at & 0x7F) << shift;
        if (!(*at++ & 0x80)) return at;
    }
}

/* OPEN has space for the deepest stack. */
static void put_events(speedscope *w, const track_state *l, uint32_t *open)
{
    int64_t ns = since_base(w, l->start_ns);
    uint32_t depth = 0;
    int is_first = 1;
    for (const block *b = l->first; b; b = b->next) {
        for (const char *at = b->bytes; at < b->bytes + b->used; is_first = 0) {
            uint64_t event;
            uint64_t number;
            uint32_t what;
            at = read_varint(at, &event);
            what = event & ((1 << WHAT_BITS) - 1);
            ns += (int64_t)(event >> WHAT_BITS);
            if (what == IS_CLOSE) {
                put_event(w, is_first, 'C', open[--depth], ns);
            } else {
                at = read_varint(at, &number);
                open[depth] = place_of(w, what, (uint32_t)number);
                put_event(w, is_first, 'O', open[depth++], ns);
            }
        }
    }
    while (depth) /* no correct plugin leaves frames open */
        put_event(w, 0, 'C', open[--depth], ns);
}

static kpt_status put_profile(speedscope *w, const track_state *l, kpti_fragment name)
{
    size_t bytes = l->most_depth * sizeof(uint32_t);
    uint32_t *open = kpti_heap_take(&w->base.heap, bytes);
    char *at;
    if (!open) return KPT_E_MEMORY;
    memset(open, 0, bytes);
    put_literal(w, "{\"type\":\"evented\",\"name\":\"");
    kpti_out_put(&w->base.out, name.text, name.size);
    at = PUT(kpti_out_reserve(&w->base.out, KPTI_CHROME_MAX_REST),
             "\",\"unit\":\"nanoseconds\",\"startValue\":");
    at = kpti_put_i64(at, since_base(w, l->start_ns));
    at = kpti_put_i64(PUT(at, ",\"endValue\":"), since_base(w, l->last_ns));
    kpti_out_wrote(&w->base.out, PUT(at, ",\"events\":["));
    put_events(w, l, open);
    put_literal(w, "]}");
    kpti_heap_give(&w->base.heap, open, bytes);
    return KPT_OK;
}

static kpt_status begin(kpti_writer *writer, const kpti_writer_options *options)
{
    speedscope *w = (speedscope *)writer;
    w->names.heap = w->threads.heap = writer->heap;
    w->spans.numbers.heap = w->spans.texts.heap = writer->heap;
    put_literal(w, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
                   "\"exporter\":\"kpytrace ");
    put_string(w, options->version);
    put_literal(w, "\",\"name\":\"");
    put_string(w, (kpt_str){writer->trace_name, writer->trace_name_bytes});
    put_literal(w, "\",\"shared\":{\"frames\":[\n");
    return kpti_frames_init(&w->frames, &frame_ops, writer);
}

static kpt_status end(kpti_writer *writer, const kpt_stats *stats)
{
    speedscope *w = (speedscope *)writer;
    kpt_status status = kpti_frames_end(&w->frames);
    const char *comma = "\n";
    (void)stats;
    if (status != KPT_OK) return status;
    put_frames(w);
    put_literal(w, "]},\"profiles\":[");
    for (uint32_t i = 0; i < w->track_capacity && status == KPT_OK; i++) {
        if (!w->track_states[i].first) continue;
        put_literal(w, comma);
        status = put_profile(w, &w->track_states[i],
                             kpti_fragments_get(&w->threads, i, kpti_chrome_no_name));
        comma = ",\n";
    }
    put_literal(w, "]}\n");
    return status;
}

static void release(kpti_writer *writer)
{
    speedscope *w = (speedscope *)writer;
    for (uint32_t i = 0; i < w->track_capacity; i++) {
        for (block *b = w->track_states[i].first; b;) {
            block *next = b->next;
            kpti_heap_give(&writer->heap, b, sizeof *b + b->capacity);
            b = next;
        }
    }
    kpti_heap_give(&writer->heap, w->track_states, w->track_capacity * sizeof *w->track_states);
    kpti_fragments_free(&w->names);
    kpti_fragments_free(&w->threads);
    kpti_text_table_free(&w->spans);
    kpti_frames_free(&w->frames);
}

static const kpti_format_ops ops = {sizeof(speedscope),
                                    begin,
                                    take_name,
                                    take_thread,
                                    take_call,
                                    take_point,
                                    end,
                                    release,
                                    NULL,
                                    NULL,
                                    NULL,
                                    NULL};

const kpti_format kpti_format_speedscope = {
    "speedscope", ".speedscope.json", KPT_ORDER_TIME, &ops, 0, 0};
