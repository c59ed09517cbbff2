/* report.c: one HTML page that displays a trace, with no external resources: the fixed page, then the data in
 * an element of its own, as base64, which no name can end. Calls are delivered by time, as events of about five
 * bytes. The events of a thread are written when there are many, so memory grows only with names and threads. */
#include "writers/report/report.h"

#include "writers/encode/proto.h"
#include "writers/report/report_gpu.h"
#include "writers/report/report_operators.h"
#include "writers/report/report_page.h"
#include "writers/report/report_text.h"

enum { FIRST_BYTES = 256, MAX_BYTES = 32 * 1024 };
/* So many tracks may have a buffer before those of tracks without open calls are written. */
enum { MAX_BUFFERS = 4096 };

/* An event is a number: the time since the thread's last event, with the kind in the lowest bits. It is
 * followed by the name of a call, or by the note of a span, mark or counter. With MORE, a line and flags
 * follow, and with HAS_FORWARD the number of a forward function, or flags and the counts of a collection. The note of a TASK identifies the task that the call that
 * has just opened resumes. */
enum { CLOSE, CALL, SPAN, MARK, COUNTER, CLOSE_MORE, CALL_MORE, TASK, WHAT_BITS = 3 };
enum { MAX_EVENT = 5 * KPTI_MAX_VARINT };
/* In addition to KPT_ACTIVITY_*. */
enum { IS_COLLECTION = 1 << 8, HAS_FORWARD = 1 << 9 };
enum {
    FLAGS_OF_BEGIN = KPT_ACTIVITY_BEGAN_BEFORE | KPT_ACTIVITY_CONTINUED,
    FLAGS_OF_END = KPT_ACTIVITY_ENDED_BY_STOP | KPT_ACTIVITY_CLAMPED | KPT_ACTIVITY_RECOVERED
};

static void put_text(kpti_writer *w, const char *text)
{
    kpti_out_put(&w->out, text, strlen(text));
}

/* --- events ----------------------------------------------------------------------------------- */

static void send(kpti_report *w, kpti_report_buffer *from)
{
    char head[2 * KPTI_MAX_VARINT];
    char *at = kpti_put_varint(kpti_put_varint(head, from->used), from->thread);
    if (!from->used) return;
    kpti_packed_put(&w->packed, head, (size_t)(at - head));
    kpti_packed_put(&w->packed, from->events, from->used);
    from->used = 0;
}

static void free_buffer(kpti_report *w, kpti_report_buffer *old)
{
    kpti_heap_give(&w->base.heap, old->events, old->capacity);
    kpti_heap_give(&w->base.heap, old, sizeof *old);
}

/* Writes and frees the buffers of the tracks that have no open calls: most of many tracks have ended. */
static void send_idle(kpti_report *w)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w->buffer_count; i++) {
        kpti_report_buffer *const buffer = w->buffers[i];
        if (buffer->depth) {
            w->buffers[kept++] = buffer;
            continue;
        }
        send(w, buffer);
        w->track_states[buffer->thread].buffer = NULL;
        free_buffer(w, buffer);
    }
    w->buffer_count = kept;
    w->most_buffers = 2 * kept > MAX_BUFFERS ? 2 * kept : MAX_BUFFERS;
}

/* Gives THREAD, which has none, a buffer. Returns NULL, with the reason in *STATUS, if there is no memory. */
static kpti_report_buffer *add_buffer(kpti_report *w, uint32_t thread, kpt_status *status)
{
    kpti_report_buffer *added;
    if (!w->most_buffers) w->most_buffers = MAX_BUFFERS;
    if (w->buffer_count >= w->most_buffers) send_idle(w);
    *status = kpti_array_reach(&w->base.heap, &w->buffers, &w->buffer_capacity, w->buffer_count,
                               sizeof(kpti_report_buffer *));
    if (*status != KPT_OK) return NULL;
    added = kpti_heap_take_zeroed(&w->base.heap, sizeof *added);
    *status = added ? KPT_OK : KPT_E_MEMORY;
    if (!added) return NULL;
    added->thread = thread;
    w->buffers[w->buffer_count++] = w->track_states[thread].buffer = added;
    return added;
}

/* There may be many threads, most of them short, so buffers start small. */
static kpt_status reserve(kpti_report *w, kpti_report_buffer *b)
{
    uint32_t bytes = b->capacity ? b->capacity * 4 : FIRST_BYTES;
    char *events;
    if (b->capacity >= MAX_BYTES) {
        send(w, b);
        return KPT_OK;
    }
    events = kpti_heap_take(&w->base.heap, bytes);
    if (!events) return KPT_E_MEMORY;
    if (b->used) memcpy(events, b->events, b->used);
    kpti_heap_give(&w->base.heap, b->events, b->capacity);
    b->events = events;
    b->capacity = bytes;
    return KPT_OK;
}

/* Writes the head of an event of THREAD. Returns the position after it, or NULL, with the reason in *STATUS. */
static char *add(kpti_report *w, uint32_t thread, int64_t ns, uint32_t what, kpt_status *status)
{
    kpti_report_track *l;
    kpti_report_buffer *b;
    char *at;
    *status = kpti_array_reach(&w->base.heap, &w->track_states, &w->track_capacity, thread,
                               sizeof *w->track_states);
    if (*status != KPT_OK) return NULL;
    l = &w->track_states[thread];
    if (!l->is_known) {
        l->is_known = 1;
        l->start_ns = l->last_ns = ns;
    }
    b = l->buffer ? l->buffer : add_buffer(w, thread, status);
    if (!b) return NULL;
    if (b->capacity - b->used < MAX_EVENT) *status = reserve(w, b);
    if (*status != KPT_OK) return NULL;
    if (ns < l->last_ns) ns = l->last_ns;
    at = b->events + b->used;
    at = kpti_put_varint(at, ((uint64_t)ns - (uint64_t)l->last_ns) << WHAT_BITS | what);
    l->last_ns = ns;
    return at;
}

static void added(kpti_report *w, uint32_t thread, const char *end)
{
    kpti_report_buffer *const b = w->track_states[thread].buffer;
    b->used = (uint32_t)(end - b->events);
}

/* Returns NULL if THREAD has none. One with open calls has one. */
static kpti_report_buffer *buffer_of(const kpti_report *w, uint32_t thread)
{
    return thread < w->track_capacity ? w->track_states[thread].buffer : NULL;
}

static kpt_status open_frame(kpti_writer *writer, const kpt_activity *a, const kpti_note *span)
{
    kpti_report *w = (kpti_report *)writer;
    const kpti_fragment no_name = {NULL, 0, 0};
    uint32_t first_line = kpti_fragments_get(&w->names, a->name, no_name).note;
    uint32_t line = a->line != first_line ? a->line : 0;
    uint32_t forward = 0;
    int is_rare;
    kpt_status status = KPT_OK;
    kpti_report_buffer *buffer;
    char *at;
    if (!span && (a->kind == KPT_KIND_OPERATOR || a->kind == KPT_KIND_RANGE_BEGIN)) {
        status = kpti_report_operator(w, a);
        if (status == KPT_OK) status = kpti_report_forward(w, a, &forward);
        if (status != KPT_OK) return status;
    }
    is_rare = !span && (line || forward || a->flags & FLAGS_OF_BEGIN);
    at = add(w, a->thread, a->start_ns, span ? SPAN : is_rare ? CALL_MORE : CALL, &status);
    if (!at) return status;
    at = kpti_put_varint(at, span ? a->value0 : a->name);
    if (is_rare) {
        at = kpti_put_varint(at, line);
        at = kpti_put_varint(at, (a->flags & (FLAGS_OF_BEGIN | FLAGS_OF_END)) |
                                     (forward ? HAS_FORWARD : 0));
        if (forward) at = kpti_put_varint(at, forward);
    }
    added(w, a->thread, at);
    w->track_states[a->thread].frames++;
    buffer = w->track_states[a->thread].buffer;
    buffer->depth++;
    if (!span) {
        buffer->begun_id = a->id;
        buffer->begun_ns = a->start_ns;
    }
    return KPT_OK;
}

static kpt_status close_frame(kpti_writer *writer, uint32_t thread, int64_t ns,
                              const kpt_activity *call)
{
    kpti_report *w = (kpti_report *)writer;
    int is_collection = call && call->kind == KPT_KIND_GC;
    uint32_t flags = call ? call->flags & FLAGS_OF_END : 0;
    kpti_report_buffer *buffer;
    kpt_status status;
    char *at;
    buffer = buffer_of(w, thread);
    if (!buffer || !buffer->depth) return KPT_OK;
    buffer->depth--;
    at = add(w, thread, ns, flags || is_collection ? CLOSE_MORE : CLOSE, &status);
    if (!at) return status;
    if (flags || is_collection)
        at = kpti_put_varint(at, flags | (is_collection ? IS_COLLECTION : 0));
    if (is_collection) {
        at = kpti_put_varint(at, call->value0);
        at = kpti_put_varint(at, call->value1);
        at = kpti_put_varint(at, call->value2);
    }
    added(w, thread, at);
    return KPT_OK;
}

static const kpti_frame_ops frame_ops = {open_frame, close_frame};

static kpt_status take_call(kpti_writer *writer, const kpt_activity *call)
{
    kpti_report *w = (kpti_report *)writer;
    kpti_resume ended;
    if (call->phase == KPT_PHASE_END) (void)kpti_resumes_end(&w->resumes, call, &ended);
    return kpti_frames_call(&w->frames, call);
}

/* The resume is a call of its thread and is written once. The page makes the task's track from it. */
static kpt_status take_task(kpti_report *w, const kpt_activity *point)
{
    const kpti_report_buffer *b = buffer_of(w, point->thread);
    kpt_status status;
    int is_new;
    char *at;
    if (!b || b->begun_id != point->parent_id || b->begun_ns != point->start_ns) return KPT_OK;
    status = kpti_resumes_point(&w->resumes, point, &is_new);
    if (status != KPT_OK || !is_new) return status;
    at = add(w, point->thread, point->start_ns, TASK, &status);
    if (at) added(w, point->thread, kpti_put_varint(at, point->value0));
    return status;
}

static kpt_status take_point(kpti_writer *writer, const kpt_activity *point, const kpti_note *note)
{
    kpti_report *w = (kpti_report *)writer;
    int is_mark = note->what == KPTI_NOTE_MARK;
    kpt_status status;
    char *at;
    if (note->what == KPTI_NOTE_TASK) return take_task(w, point);
    if (!is_mark && note->what != KPTI_NOTE_COUNTER)
        return kpti_frames_point(&w->frames, point, note);
    kpti_spans_came(&w->frames.spans, point);
    at = add(w, point->thread, point->start_ns, is_mark ? MARK : COUNTER, &status);
    if (at) added(w, point->thread, kpti_put_varint(at, point->value0));
    return status;
}

static kpt_status take_names(kpti_writer *writer, const kpt_batch *batch)
{
    return kpti_report_names((kpti_report *)writer, batch);
}

static kpt_status take_marker(kpti_writer *writer, const kpt_activity *marker)
{
    kpti_report *w = (kpti_report *)writer;
    kpt_status status = KPT_OK;
    if (marker->thread < w->track_capacity && w->track_states[marker->thread].is_known)
        status = kpti_step_finder_thread(&w->steps, marker->thread,
                                         w->track_states[marker->thread].start_ns);
    return status == KPT_OK ? kpti_step_finder_marker(&w->steps, marker) : status;
}

/* --- the file --------------------------------------------------------------------------------- */

static kpt_status take_name(kpti_writer *writer, const kpt_name *name)
{
    return kpti_report_name((kpti_report *)writer, name);
}

static kpt_status take_thread(kpti_writer *writer, const kpt_thread *thread)
{
    return kpti_report_thread((kpti_report *)writer, thread);
}

static kpt_status begin(kpti_writer *writer, const kpti_writer_options *options)
{
    kpti_report *w = (kpti_report *)writer;
    kpt_status status = kpti_frames_init(&w->frames, &frame_ops, writer);
    w->names.heap = w->threads.heap = w->resumes.heap = writer->heap;
    w->forwards.heap = w->forward_of.heap = writer->heap;
    kpti_step_finder_init(&w->steps, &writer->heap, writer->notes);
    w->packed.out = &writer->out;
    if (status == KPT_OK) status = kpti_report_begin_text(w, options);
    if (status == KPT_OK && kpti_packed_begin(&w->packed)) status = KPT_E_MEMORY;
    if (status != KPT_OK) return status;
    kpti_out_put(&writer->out, kpti_report_page, kpti_report_page_bytes);
    put_text(
        writer,
        "<script type=\"text/plain\" class=\"section\" data-kind=\"trace\" data-pack=\"gzip\">");
    return KPT_OK;
}

static kpt_status end(kpti_writer *writer, const kpt_stats *stats)
{
    kpti_report *w = (kpti_report *)writer;
    kpt_status status = kpti_frames_end(&w->frames);
    if (status != KPT_OK) return status;
    for (uint32_t i = 0; i < w->buffer_count; i++)
        send(w, w->buffers[i]);
    kpti_packed_put(&w->packed, "", 1);
    kpti_report_put_text(w, stats);
    kpti_report_put_operators(w);
    kpti_packed_end(&w->packed, 1);
    put_text(writer, "</script>\n");
    return kpti_report_gpu(w);
}

static void release(kpti_writer *writer)
{
    kpti_report *w = (kpti_report *)writer;
    kpti_packed_end(&w->packed, 0);
    for (uint32_t i = 0; i < w->buffer_count; i++)
        free_buffer(w, w->buffers[i]);
    kpti_heap_give(&writer->heap, w->track_states, w->track_capacity * sizeof *w->track_states);
    kpti_heap_give(&writer->heap, w->buffers, w->buffer_capacity * sizeof(kpti_report_buffer *));
    kpti_fragments_free(&w->names);
    kpti_fragments_free(&w->threads);
    kpti_report_free_text(w);
    kpti_report_free_operators(w);
    kpti_resumes_free(&w->resumes);
    kpti_frames_free(&w->frames);
}

static const kpti_format_ops ops = {
    sizeof(kpti_report), begin,      take_name, take_thread, take_call,
    take_point,          end,        release,   NULL,        NULL,
    take_names,          take_marker};

const kpti_format kpti_format_report = {"report", ".html", KPT_ORDER_TIME, &ops, 1, 0, 1};
