#include "writers/perfetto/perfetto.h"

#include "writers/format/qualified_name.h"
#include "writers/perfetto/perfetto_gpu.h"
#include "writers/perfetto/perfetto_notes.h"
#include "writers/perfetto/perfetto_operators.h"
#include "writers/perfetto/perfetto_packets.h"
#include "writers/perfetto/perfetto_tasks.h"
#include "writers/perfetto/perfetto_tracks.h"

/* --- names and threads ------------------------------------------------------------------------ */

/* Makes the field of a packet that begins a slice. It is shorter than 64 bytes. */
static kpt_status add_event(kpti_perfetto *w, const kpt_name *name)
{
    uint64_t id = (uint64_t)name->index + 1;
    char *begin = kpti_fragments_reserve(&w->events, 64);
    char *at;
    if (!begin) return KPT_E_MEMORY;
    at = kpti_proto_number(begin + 2, EVENT_TYPE, EVENT_BEGIN);
    at = kpti_proto_number(at, EVENT_NAME_ID, id);
    if (name->file.size) at = kpti_proto_number(at, EVENT_SOURCE_ID, id);
    begin[0] = PACKET_TRACK_EVENT << 3 | KPTI_WIRE_BYTES;
    begin[1] = (char)(at - begin - 2);
    /* Only Python functions have a line, and only operators have a scope. */
    return kpti_fragments_set(&w->events, name->index, begin, (size_t)(at - begin),
                              name->first_line + name->scope);
}

static size_t text_capacity(kpt_str text)
{
    size_t size = text.size < KPTI_PERFETTO_MAX_NAME ? (size_t)text.size : KPTI_PERFETTO_MAX_NAME;
    return size * KPTI_UTF8_MAX_GROWTH;
}

static char *put_text(char *at, uint32_t field, kpt_str text)
{
    return kpti_proto_text(at, field, text, KPTI_PERFETTO_MAX_NAME);
}

static char *put_source(char *at, const kpt_name *name)
{
    char *content = kpti_proto_open(at, INTERNED_SOURCE);
    at = kpti_proto_number(content, INTERN_ID, (uint64_t)name->index + 1);
    at = put_text(at, SOURCE_FILE, name->file);
    at = put_text(at, SOURCE_FUNCTION, name->qualname.size ? name->qualname : name->function);
    at = kpti_proto_number(at, SOURCE_LINE, name->first_line);
    return kpti_proto_close(content, at);
}

static kpt_status add_interned(kpti_perfetto *w, const kpt_name *name)
{
    char space[KPTI_MAX_QUALIFIED];
    const kpt_str shown = kpti_qualified_name(name, space);
    size_t capacity = text_capacity(shown) + text_capacity(name->file) +
                      text_capacity(name->qualname) + text_capacity(name->function) +
                      KPTI_PERFETTO_MAX_REST;
    char *begin = kpti_fragments_reserve(&w->interned, capacity);
    char *content;
    char *entry;
    char *at;
    if (!begin) return KPT_E_MEMORY;
    content = kpti_proto_open(begin, PACKET_INTERNED);
    entry = kpti_proto_open(content, INTERNED_NAME);
    at = kpti_proto_number(entry, INTERN_ID, (uint64_t)name->index + 1);
    at = kpti_proto_close(entry, put_text(at, INTERN_TEXT, shown));
    if (name->file.size) at = put_source(at, name);
    at = kpti_proto_close(content, at);
    return kpti_fragments_set(&w->interned, name->index, begin, (size_t)(at - begin), 0);
}

static kpt_status take_name(kpti_writer *writer, const kpt_name *name)
{
    kpti_perfetto *w = (kpti_perfetto *)writer;
    kpt_status status = add_event(w, name);
    return status == KPT_OK ? add_interned(w, name) : status;
}

static kpt_status take_thread(kpti_writer *writer, const kpt_thread *thread)
{
    return kpti_perfetto_begin_thread((kpti_perfetto *)writer, thread);
}

/* --- calls: two packets, in at most 60 ns and 30 bytes together --------------------------------- */

/* Makes space for the bit of NAME, and sets it. There may be many sequences, so the first space is small. */
static kpt_status add_seen_bit(kpti_perfetto *w, kpti_perfetto_track *t, uint32_t name)
{
    enum { FIRST_BYTES = 16 };
    kpt_status status;
    if (!t->seen_bytes) {
        unsigned char *const bits = kpti_heap_take_zeroed(&w->base.heap, FIRST_BYTES);
        if (!bits) return KPT_E_MEMORY;
        t->seen.bits = bits;
        t->seen_bytes = FIRST_BYTES;
    }
    status = kpti_array_reach(&w->base.heap, &t->seen.bits, &t->seen_bytes, name / 8, 1);
    if (status == KPT_OK) t->seen.bits[name / 8] |= (unsigned char)(1 << name % 8);
    return status;
}

/* Notes that NAME is interned. */
static kpt_status add_seen(kpti_perfetto *w, kpti_perfetto_track *t, uint32_t name)
{
    uint32_t few[KPTI_PERFETTO_FEW_NAMES];
    kpt_status status;
    if (t->seen_bytes) return add_seen_bit(w, t, name);
    for (int i = 0; i < KPTI_PERFETTO_FEW_NAMES; i++) {
        if (t->seen.few[i]) continue;
        t->seen.few[i] = name + 1;
        return KPT_OK;
    }
    memcpy(few, t->seen.few, sizeof few);
    status = add_seen_bit(w, t, name);
    for (int i = 0; i < KPTI_PERFETTO_FEW_NAMES && status == KPT_OK; i++)
        status = add_seen_bit(w, t, few[i] - 1);
    return status;
}

/* Writes the interned data of NAME to the sequence. */
static kpt_status intern(kpti_perfetto *w, kpti_perfetto_track *t, uint32_t name)
{
    kpti_fragment text = w->interned.items[name];
    char *packet = kpti_proto_open(kpti_out_reserve(&w->base.out, text.size + 64), TRACE_PACKET);
    char *at = kpti_perfetto_put_head(t, packet);
    memcpy(at, text.text, text.size);
    kpti_out_wrote(&w->base.out, kpti_proto_close(packet, at + text.size));
    return add_seen(w, t, name);
}

static inline int is_seen(const kpti_perfetto_track *t, uint32_t name)
{
    if (t->seen_bytes) return name / 8 < t->seen_bytes && t->seen.bits[name / 8] >> name % 8 & 1;
    for (int i = 0; i < KPTI_PERFETTO_FEW_NAMES; i++)
        if (t->seen.few[i] == name + 1) return 1;
    return 0;
}

static void put_rare_begin(kpti_perfetto *w, kpti_perfetto_track *t, const kpt_activity *a,
                           kpti_fragment slice)
{
    kpti_perfetto_event event;
    char *at;
    if (a->flags & KPT_ACTIVITY_CONTINUED) kpti_perfetto_intern_operators(w, t);
    (void)kpti_perfetto_open(w, t, a->start_ns, EVENT_BEGIN, 0, &event);
    memcpy(event.event, slice.text + 2, slice.size - 2); /* it includes the type */
    at = event.event + slice.size - 2;
    if (a->line && a->line != slice.note)
        at = kpti_perfetto_annotate(at, KPTI_ANNOTATION_LINE, ANNOTATION_UINT, a->line);
    if (a->flags & KPT_ACTIVITY_BEGAN_BEFORE)
        at = kpti_perfetto_annotate(at, KPTI_ANNOTATION_BEGAN_BEFORE, ANNOTATION_BOOL, 1);
    if (a->flags & KPT_ACTIVITY_CONTINUED)
        at = kpti_perfetto_annotate(at, KPTI_ANNOTATION_CONTINUED, ANNOTATION_BOOL, 1);
    kpti_perfetto_close(w, &event, at);
}

static kpt_status begin_call(kpti_perfetto *w, kpti_perfetto_track *t, const kpt_activity *a)
{
    enum { RARE = KPT_ACTIVITY_BEGAN_BEFORE | KPT_ACTIVITY_CONTINUED };
    static const char unknown_text[KPTI_FRAGMENT_STEP] = "\x5A\x0C\x48\x01\xBA\x01\x07unknown";
    static const kpti_fragment unknown = {unknown_text, 14, 0};
    kpti_fragment slice = kpti_fragments_get(&w->events, a->name, unknown);
    char *begin;
    char *at;
    if (!is_seen(t, a->name) && slice.text != unknown_text) {
        kpt_status status = intern(w, t, a->name);
        if (status != KPT_OK) return status;
    }
    if (kpti_perfetto_is_operator(a)) return kpti_perfetto_begin_operator(w, t, a, slice);
    if (a->flags & RARE || (a->line && a->line != slice.note)) {
        put_rare_begin(w, t, a, slice);
        return KPT_OK;
    }
    begin = kpti_out_reserve(&w->base.out, KPTI_PERFETTO_SHORT_PACKET);
    at = kpti_perfetto_put_head(t, kpti_perfetto_put_time(t, begin + 2, a->start_ns));
    memcpy(at, slice.text, KPTI_FRAGMENT_STEP);
    kpti_perfetto_end_short(w, begin, at + slice.size);
    return KPT_OK;
}

static void put_rare_end(kpti_perfetto *w, kpti_perfetto_track *t, const kpt_activity *a,
                         const kpti_perfetto_operator_end *more)
{
    static const struct {
        uint32_t flag;
        uint32_t annotation;
    } rows[] = {{KPT_ACTIVITY_ENDED_BY_STOP, KPTI_ANNOTATION_ENDED_BY_STOP},
                {KPT_ACTIVITY_CLAMPED, KPTI_ANNOTATION_CLAMPED},
                {KPT_ACTIVITY_RECOVERED, KPTI_ANNOTATION_RECOVERED}};
    kpti_perfetto_event event;
    char *at = kpti_perfetto_open(w, t, a->end_ns, EVENT_END, 0, &event);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (a->flags & rows[i].flag)
            at = kpti_perfetto_annotate(at, rows[i].annotation, ANNOTATION_BOOL, 1);
    if (a->kind == KPT_KIND_GC) {
        at = kpti_perfetto_annotate(at, KPTI_ANNOTATION_GENERATION, ANNOTATION_UINT, a->value0);
        at = kpti_perfetto_annotate(at, KPTI_ANNOTATION_COLLECTED, ANNOTATION_UINT, a->value1);
        at = kpti_perfetto_annotate(at, KPTI_ANNOTATION_UNCOLLECTABLE, ANNOTATION_UINT, a->value2);
    }
    if (more) at = kpti_perfetto_put_operator_end(at, more);
    kpti_perfetto_close(w, &event, at);
}

static void end_call(kpti_perfetto *w, kpti_perfetto_track *t, const kpt_activity *a)
{
    enum { RARE = KPT_ACTIVITY_ENDED_BY_STOP | KPT_ACTIVITY_CLAMPED | KPT_ACTIVITY_RECOVERED };
    const kpti_perfetto_operator_end *more = NULL;
    kpti_perfetto_operator_end operator_end;
    uint32_t frame;
    while ((frame = kpti_spans_pop_of_call(&w->spans, a)))
        kpti_perfetto_end_frame(w, t, frame, a->end_ns, a);
    if (a->kind == KPT_KIND_OPERATOR && kpti_perfetto_end_operator(w, t, a, &operator_end))
        more = &operator_end;
    if (more || a->flags & RARE || a->kind == KPT_KIND_GC) {
        put_rare_end(w, t, a, more);
    } else {
        char *begin = kpti_out_reserve(&w->base.out, KPTI_PERFETTO_SHORT_PACKET);
        char *at = kpti_perfetto_put_time(t, begin + 2, a->end_ns);
        memcpy(at, t->end, sizeof t->end);
        kpti_perfetto_end_short(w, begin, at + t->end_bytes);
    }
    while ((frame = kpti_spans_pop_after_call(&w->spans, a)))
        kpti_perfetto_end_frame(w, t, frame, a->end_ns, NULL);
}

static kpt_status take_call(kpti_writer *writer, const kpt_activity *a)
{
    kpti_perfetto *w = (kpti_perfetto *)writer;
    kpti_perfetto_track *t = kpti_perfetto_track_of(w, a->thread);
    if (!t) return a->thread < KPTI_MAX_ITEMS ? KPT_E_MEMORY : KPT_E_LIMIT;
    if (a->phase == KPT_PHASE_BEGIN) {
        t->begun_id = a->id;
        t->begun_ns = a->start_ns;
        return begin_call(w, t, a);
    }
    end_call(w, t, a);
    if (w->resumes.open) kpti_perfetto_task_end(w, t, a);
    return KPT_OK;
}

/* --- the beginning and the end ---------------------------------------------------------------- */

static kpt_status take_point(kpti_writer *writer, const kpt_activity *point, const kpti_note *note)
{
    return kpti_perfetto_note((kpti_perfetto *)writer, point, note);
}

static kpt_status begin_process(kpti_writer *writer, const kpti_writer_options *options)
{
    kpti_perfetto *w = (kpti_perfetto *)writer;
    kpt_status status = kpti_spans_init(&w->spans, writer);
    w->events.heap = w->interned.heap = w->counters.heap = w->threads.heap = writer->heap;
    w->resumes.heap = w->task_tracks.heap = writer->heap;
    if (status != KPT_OK) return status;
    kpti_perfetto_begin_process(w, options);
    return KPT_OK;
}

static kpt_status end(kpti_writer *writer, const kpt_stats *stats)
{
    kpt_status status = kpti_perfetto_rest((kpti_perfetto *)writer);
    (void)stats;
    return status == KPT_OK ? kpti_perfetto_gpu((kpti_perfetto *)writer) : status;
}

static void free_tracks(kpti_perfetto *w)
{
    const kpti_heap *heap = &w->base.heap;
    for (uint32_t block = 0; block < w->block_capacity; block++) {
        kpti_perfetto_track *tracks = w->track_blocks[block];
        for (uint32_t i = 0; tracks && i < KPTI_PERFETTO_BLOCK; i++) {
            if (tracks[i].seen_bytes)
                kpti_heap_give(heap, tracks[i].seen.bits, tracks[i].seen_bytes);
            kpti_perfetto_free_operators(w, &tracks[i]);
        }
        kpti_heap_give(heap, tracks, KPTI_PERFETTO_BLOCK * sizeof *tracks);
    }
    kpti_heap_give(heap, w->track_blocks, w->block_capacity * sizeof *w->track_blocks);
    w->track_blocks = NULL;
    w->block_capacity = 0;
}

static void release(kpti_writer *writer)
{
    kpti_perfetto *w = (kpti_perfetto *)writer;
    free_tracks(w);
    kpti_fragments_free(&w->events);
    kpti_fragments_free(&w->interned);
    kpti_u64_map_free(&w->counters);
    kpti_u64_map_free(&w->threads);
    kpti_resumes_free(&w->resumes);
    kpti_task_tracks_free(&w->task_tracks);
    if (w->spans.notes) kpti_spans_free(&w->spans);
}

static kpt_status end_process(kpti_writer *writer)
{
    kpti_perfetto *w = (kpti_perfetto *)writer;
    kpt_status status = kpti_perfetto_rest(w);
    if (status == KPT_OK) status = kpti_perfetto_gpu(w);
    /* the process's own sequence, and those of its threads */
    w->sequences += 1 + (uint64_t)w->next_thread;
    w->made_tracks = 0;
    w->next_thread = 0;
    release(writer);
    return status;
}

static const kpti_format_ops ops = {sizeof(kpti_perfetto),
                                    begin_process,
                                    take_name,
                                    take_thread,
                                    take_call,
                                    take_point,
                                    end,
                                    release,
                                    end_process,
                                    begin_process,
                                    NULL,
                                    NULL};

const kpti_format kpti_format_perfetto = {"Perfetto", ".pftrace", KPT_ORDER_TIME, &ops, 1, 0, 0};
