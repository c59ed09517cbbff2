/* speedscope.c: speedscope's own format: an "evented" profile per thread, in nanoseconds since base_ns. A
 * profile must be contiguous in the file, but calls are delivered by time, with all threads mixed. So each
 * thread's events are stored (event_blocks.h), in six to ten bytes per call, and written at the end. */
#include "writers/flame/speedscope.h"

#include "core/base/varint.h"
#include "writers/chrome/chrome_events.h"
#include "writers/encode/proto.h"
#include "writers/encode/string_table.h"
#include "writers/flame/event_blocks.h"
#include "writers/format/nested_frames.h"
#include "writers/format/qualified_name.h"

/* An event is a number: the time since the last event, with the kind of event in the lowest bits. If a frame
 * opens, the frame's number follows. */
enum { IS_CLOSE = 0, IS_CALL = 1, IS_SPAN = 2, WHAT_BITS = 2 };
enum { MAX_EVENT = 2 * KPTI_MAX_VARINT };

typedef struct speedscope {
    kpti_writer base;
    kpti_frames frames;
    /* frames as objects; at the end, the note is the index of a name among them */
    kpti_fragments names;
    kpti_text_table spans;     /* frames after those of names */
    kpti_fragments threads;    /* memory of thread_names */
    const char **thread_names; /* escaped; NULL: the thread was not delivered */
    uint32_t name_capacity;
    kpti_event_blocks events;
} speedscope;

#define PUT KPTI_PUT

/* Never overflows. */
static int64_t since_base(const speedscope *w, int64_t ns)
{
    return (int64_t)((uint64_t)ns - (uint64_t)w->base.base_ns);
}

/* --- storing events ---------------------------------------------------------------------------- */

/* Returns STATUS, of a function of event_blocks.h. */
static kpt_status check(speedscope *w, kpt_status status)
{
    if (status == KPT_E_IO) kpti_out_fail(&w->base.out, w->events.os_error);
    return status;
}

static kpt_status keep(speedscope *w, uint32_t thread, int64_t ns, uint32_t what, uint32_t number)
{
    kpt_status status;
    kpti_event_buffer *const b =
        kpti_event_blocks_reserve(&w->events, thread, ns, MAX_EVENT, &status);
    char *at;
    if (!b) return check(w, status);
    if (ns < b->head.last_ns) ns = b->head.last_ns;
    at = b->bytes + b->head.size;
    at = kpti_put_varint(at, ((uint64_t)ns - (uint64_t)b->head.last_ns) << WHAT_BITS | what);
    if (what != IS_CLOSE) at = kpti_put_varint(at, number);
    b->head.size = (uint32_t)(at - b->bytes);
    b->head.last_ns = ns;
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
    kpti_event_buffer *b;
    if (span) status = kpti_text_table_at(&w->spans, span->name, put_span, &name);
    if (status == KPT_OK)
        status = keep(w, at->thread, at->start_ns, span ? IS_SPAN : IS_CALL, name);
    if (status != KPT_OK) return status;
    b = kpti_event_blocks_buffer(&w->events, at->thread);
    if (++b->depth > b->head.most_depth) b->head.most_depth = b->depth;
    return KPT_OK;
}

static kpt_status close_frame(kpti_writer *writer, uint32_t thread, int64_t ns,
                              const kpt_activity *call)
{
    speedscope *w = (speedscope *)writer;
    kpti_event_buffer *const b = kpti_event_blocks_buffer(&w->events, thread);
    (void)call;
    if (!b || !b->depth) return KPT_OK;
    b->depth--;
    return keep(w, thread, ns, IS_CLOSE, 0);
}

static const kpti_frame_ops frame_ops = {open_frame, close_frame};

/* --- names and threads ------------------------------------------------------------------------ */

static kpt_status take_name(kpti_writer *writer, const kpt_name *name)
{
    speedscope *w = (speedscope *)writer;
    char space[KPTI_MAX_QUALIFIED];
    const kpt_str shown = kpti_qualified_name(name, space);
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
    char *text = kpti_fragments_reserve(&w->threads, kpti_chrome_reserve(thread->name) + 1);
    char *end;
    kpt_status status = kpti_array_reach(&w->base.heap, &w->thread_names, &w->name_capacity,
                                         thread->index, sizeof *w->thread_names);
    if (!text || status != KPT_OK) return text ? status : KPT_E_MEMORY;
    end = kpti_chrome_escape(text, thread->name); /* has no zeros */
    *end = 0;
    kpti_fragments_keep(&w->threads, (size_t)(end - text) + 1);
    w->thread_names[thread->index] = text;
    return KPT_OK;
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

/* The events of a profile that is being written. */
typedef struct profile {
    uint32_t *open; /* frames; has space for the deepest stack */
    uint32_t depth;
    int64_t ns;
    int has_events;
} profile;

static void put_events(speedscope *w, profile *p, const char *at, const char *end)
{
    for (; at < end; p->has_events = 1) {
        uint64_t event;
        uint64_t number;
        uint32_t what;
        at = kpti_read_varint(at, &event);
        what = event & ((1 << WHAT_BITS) - 1);
        p->ns += (int64_t)(event >> WHAT_BITS);
        if (what == IS_CLOSE) {
            put_event(w, !p->has_events, 'C', p->open[--p->depth], p->ns);
        } else {
            at = kpti_read_varint(at, &number);
            p->open[p->depth] = place_of(w, what, (uint32_t)number);
            put_event(w, !p->has_events, 'O', p->open[p->depth++], p->ns);
        }
    }
}

/* Writes the events of COUNT blocks. BYTES has space for one. */
static kpt_status put_blocks(speedscope *w, profile *p, uint32_t count, char *bytes)
{
    kpt_status status = KPT_OK;
    for (uint32_t i = 0; i < count && status == KPT_OK; i++) {
        uint32_t size = 0;
        status = check(w, kpti_event_blocks_read(&w->events, count, i, bytes, &size));
        put_events(w, p, bytes, bytes + size);
    }
    return status;
}

static const char *name_of(const speedscope *w, uint32_t thread)
{
    const char *name = thread < w->name_capacity ? w->thread_names[thread] : NULL;
    return name ? name : "unknown";
}

/* Writes the profile of a thread that has COUNT blocks. */
static kpt_status put_profile(speedscope *w, uint32_t thread, uint32_t count,
                              const kpti_event_block *last, char *bytes)
{
    const char *name = name_of(w, thread);
    const size_t open_bytes = last->most_depth * sizeof(uint32_t);
    profile p = {kpti_heap_take_zeroed(&w->base.heap, open_bytes), 0, since_base(w, last->start_ns),
                 0};
    kpt_status status;
    char *at;
    if (!p.open) return KPT_E_MEMORY;
    put_literal(w, "{\"type\":\"evented\",\"name\":\"");
    kpti_out_put(&w->base.out, name, strlen(name));
    at = PUT(kpti_out_reserve(&w->base.out, KPTI_CHROME_MAX_REST),
             "\",\"unit\":\"nanoseconds\",\"startValue\":");
    at = kpti_put_i64(at, p.ns);
    at = kpti_put_i64(PUT(at, ",\"endValue\":"), since_base(w, last->last_ns));
    kpti_out_wrote(&w->base.out, PUT(at, ",\"events\":["));
    status = put_blocks(w, &p, count, bytes);
    while (p.depth) /* no correct plugin leaves frames open */
        put_event(w, 0, 'C', p.open[--p.depth], p.ns);
    put_literal(w, "]}");
    kpti_heap_give(&w->base.heap, p.open, open_bytes);
    return status;
}

static kpt_status put_profiles(speedscope *w, char *bytes)
{
    kpt_status status = check(w, kpti_event_blocks_finish(&w->events));
    const char *comma = "\n";
    for (uint32_t i = 0; i < w->events.track_capacity && status == KPT_OK; i++) {
        kpti_event_block last = {0};
        uint32_t count;
        status = check(w, kpti_event_blocks_find(&w->events, i, &count, &last));
        if (status != KPT_OK || !count) continue;
        put_literal(w, comma);
        status = put_profile(w, i, count, &last, bytes);
        comma = ",\n";
    }
    return status;
}

static kpt_status begin(kpti_writer *writer, const kpti_writer_options *options)
{
    speedscope *w = (speedscope *)writer;
    w->names.heap = w->threads.heap = writer->heap;
    w->spans.numbers.heap = w->spans.texts.heap = writer->heap;
    w->events.heap = w->events.log.heap = writer->heap;
    w->events.log.output = &writer->out.place;
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
    char *bytes;
    (void)stats;
    if (status != KPT_OK) return status;
    bytes = kpti_heap_take(&writer->heap, KPTI_MAX_BLOCK_BYTES);
    if (!bytes) return KPT_E_MEMORY;
    put_frames(w);
    put_literal(w, "]},\"profiles\":[");
    status = put_profiles(w, bytes);
    put_literal(w, "]}\n");
    kpti_heap_give(&writer->heap, bytes, KPTI_MAX_BLOCK_BYTES);
    return status;
}

static void release(kpti_writer *writer)
{
    speedscope *w = (speedscope *)writer;
    kpti_event_blocks_free(&w->events);
    kpti_heap_give(&writer->heap, w->thread_names, w->name_capacity * sizeof *w->thread_names);
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
    "speedscope", ".speedscope.json", KPT_ORDER_TIME, &ops, 0, 0, 0};
