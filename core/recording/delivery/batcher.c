#include "core/recording/delivery/batcher.h"

#include "core/base/assert.h"

enum { DEFAULT_ROOM = 4096 };

static const uint32_t no_thread = UINT32_MAX;

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

int kpti_batcher_init(kpti_batcher *b, const kpti_delivery_job *job)
{
    const kpti_recording *recording = job->recording;
    const uint32_t asked = job->delivery->batch_size;
    memset(b, 0, sizeof *b);
    b->env = job->env;
    b->recording = recording;
    b->delivery = job->delivery;
    b->timebase = job->delivery->convert
                      ? (kpti_timebase){job->delivery->convert, job->delivery->convert_ctx, 0}
                      : (kpti_timebase){job->own_convert, job->own_convert_ctx, 0};
    b->timebase.end_ns = job->delivery->end_ns;
    b->end_ns = job->delivery->end_ns ? job->delivery->end_ns : INT64_MAX;
    b->needed =
        job->delivery->flags & KPT_DELIVER_MARKED ? KPT_ACTIVITY_MARKED | KPT_ACTIVITY_WATCHED : 0;
    b->last_thread = no_thread;
    b->gc_name = kpti_gc_function(recording);
    b->point_name = kpti_point_function(recording);
    b->range_begin_name = kpti_range_begin_function(recording);
    b->last_name = kpti_range_end_function(recording);
    b->parts = (job->delivery->flags & KPT_DELIVER_PARTS) != 0;
    if (job->delivery->flags & KPT_DELIVER_POINTS) b->points |= KPTI_POINTS;
    if (job->delivery->flags & KPT_DELIVER_RANGES) b->points |= KPTI_RANGES;
    b->has_inputs = (job->delivery->flags & KPT_DELIVER_INPUTS) != 0;
    kpti_host_texts_init(&b->texts, b->env, b->last_name + 1);
    b->capacity = asked ? smaller(asked, DEFAULT_ROOM) : DEFAULT_ROOM;
    /* Each activity adds at most one thread and one name, and the name of a range and inputs if they are wanted. */
    b->name_capacity = b->points & KPTI_RANGES || b->has_inputs
                           ? 3 * b->capacity
                           : smaller(b->capacity, b->last_name + 1);
    b->thread_capacity = smaller(b->capacity, recording->track_count);
    b->activities = kpti_alloc(b->env, b->capacity * sizeof *b->activities);
    b->names = kpti_alloc(b->env, b->name_capacity * sizeof *b->names);
    b->notes = kpti_alloc(b->env, ((size_t)b->last_name + 1) * sizeof *b->notes);
    b->threads = kpti_alloc(b->env, b->thread_capacity * sizeof *b->threads);
    b->delivered_threads = kpti_alloc(b->env, recording->track_count);
    return b->activities && b->names && b->notes && b->threads && b->delivered_threads;
}

void kpti_batcher_free(kpti_batcher *b)
{
    kpti_free(b->env, b->activities, b->capacity * sizeof *b->activities);
    kpti_free(b->env, b->names, b->name_capacity * sizeof *b->names);
    kpti_free(b->env, b->notes, ((size_t)b->last_name + 1) * sizeof *b->notes);
    kpti_free(b->env, b->threads, b->thread_capacity * sizeof *b->threads);
    kpti_free(b->env, b->delivered_threads, b->recording->track_count);
    kpti_host_texts_free(&b->texts);
}

#define STR(text)                \
    {                            \
        (text), sizeof(text) - 1 \
    }

static void describe(const kpti_batcher *b, uint32_t name, kpti_function_view *out)
{
    static const kpti_function_view gc = {
        .display = STR("Python GC"), .function = STR("gc"), .kind = KPT_KIND_GC};
    static const kpti_function_view point = {
        .display = STR("<point>"), .function = STR("<point>"), .kind = KPT_KIND_POINT};
    static const kpti_function_view range_begin = {
        .display = STR("<range>"), .function = STR("<range>"), .kind = KPT_KIND_RANGE_BEGIN};
    static const kpti_function_view range_end = {
        .display = STR("<range>"), .function = STR("<range>"), .kind = KPT_KIND_RANGE_END};
    static const kpti_function_view unknown = {
        .display = STR("<unknown>"), .function = STR("<unknown>"), .kind = KPT_KIND_PYTHON};
    memset(out, 0, sizeof *out);
    if (name == b->gc_name)
        *out = gc;
    else if (name == b->point_name)
        *out = point;
    else if (name == b->range_begin_name)
        *out = range_begin;
    else if (name == b->last_name)
        *out = range_end;
    else if (!b->recording->describe(b->recording->describe_ctx, name, out))
        *out = unknown;
    if (!out->kind) out->kind = KPT_KIND_PYTHON;
}

/* A kpti_inputs_fn. CTX is the batcher. */
static uint32_t find_inputs(void *ctx, const kpti_event *events, uint32_t count)
{
    kpti_batcher *const b = ctx;
    const uint32_t index = kpti_host_texts_find(&b->texts, events, count, KPTI_SCOPE_INPUTS);
    if (!index) b->no_memory = 1;
    return index;
}

static kpti_replay *replay_with(kpti_batcher *b, uint32_t track, uint64_t first_id,
                                kpti_parts parts, kpti_inputs_fn inputs)
{
    const kpti_replay_options options = {b->parts ? parts : KPTI_PARTS_NONE,
                                         (b->points & KPTI_RANGES) != 0, inputs, b};
    return kpti_replay_new(b->env, b->recording, track, first_id, &b->timebase, options);
}

kpti_replay *kpti_batcher_replay(kpti_batcher *b, uint32_t track, uint64_t first_id,
                                 kpti_parts parts)
{
    return replay_with(b, track, first_id, parts, b->has_inputs ? find_inputs : NULL);
}

kpti_replay *kpti_batcher_first_pass(kpti_batcher *b, uint32_t track)
{
    return replay_with(b, track, 1, KPTI_PARTS_NUMBERED, NULL);
}

void kpti_batcher_add_name(kpti_batcher *b, uint32_t name)
{
    kpt_name *added = &b->names[b->name_count++];
    kpti_function_view view;
    kpti_assert(kpti_batcher_is_valid(b) && name <= b->last_name && !b->notes[name].kind);
    describe(b, name, &view);
    *added = (kpt_name){name,          view.first_line, view.display, view.function,
                        view.qualname, view.file,       view.scope,   0};
    b->notes[name] =
        (kpti_name_note){view.kind, view.kind == KPT_KIND_PYTHON ? view.first_line : 0};
}

void kpti_batcher_name_range(kpti_batcher *b, const kpt_activity *a, kpt_activity *out)
{
    const uint32_t scope = (uint32_t)a->value1 & KPT_SCOPE_MAX;
    const uint32_t inputs = (uint32_t)(a->value1 >> KPTI_RANGE_INPUTS_SHIFT);
    const kpti_event *const events = (const kpti_event *)(uintptr_t)a->id;
    const uint32_t index = kpti_host_texts_find(&b->texts, events, a->line, scope);
    out->id = 0;
    out->line = inputs;
    out->value1 = (uint32_t)a->value1;
    if (!index) {
        b->no_memory = 1;
        return;
    }
    out->name = index;
    kpti_batcher_add_text(b, index);
    if (inputs) kpti_batcher_add_text(b, inputs);
}

void kpti_batcher_add_text(kpti_batcher *b, uint32_t index)
{
    kpti_host_text *const text = kpti_host_texts_at(&b->texts, index);
    const int is_name = text->scope != KPTI_SCOPE_INPUTS;
    if (text->is_delivered) return;
    text->is_delivered = 1;
    b->names[b->name_count++] = (kpt_name){.index = index,
                                           .display = is_name ? text->text : (kpt_str){0},
                                           .function = text->text,
                                           .scope = is_name ? text->scope : 0,
                                           .flags = is_name ? 0 : KPT_NAME_INPUTS};
    kpti_assert(b->name_count <= b->name_capacity);
}

void kpti_batcher_add_thread(kpti_batcher *b, uint32_t track)
{
    kpti_track t;
    kpti_assert(track < b->recording->track_count);
    b->last_thread = track;
    if (b->delivered_threads[track]) return;
    b->delivered_threads[track] = 1;
    t = kpti_recording_track(b->recording, track);
    b->threads[b->thread_count++] = (kpt_thread){track, t.flags, t.os_tid, t.host_value, t.name};
    kpti_assert(kpti_batcher_is_valid(b));
}

/* Removes the activities that begin after the delivery's end, and cuts the others. Returns how many are left. */
static uint32_t apply_end(const kpti_batcher *b, kpt_activity *activities, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!kpti_batcher_wants(b, activities[i].start_ns)) continue;
        activities[kept] = activities[i];
        kpti_batcher_cut(b, &activities[kept].end_ns, &activities[kept].flags);
        kept++;
    }
    return kept;
}

/* Keeps only the activities that have a needed flag. Returns how many are left. */
static uint32_t keep_needed(const kpti_batcher *b, kpt_activity *activities, uint32_t filled)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < filled; i++)
        if (activities[i].flags & b->needed || activities[i].name >= b->point_name)
            activities[kept++] = activities[i];
    return kept;
}

/* Counts points, ranges and further parts of calls. */
static uint32_t count_others(const kpti_batcher *b, const kpt_activity *activities, uint32_t filled)
{
    uint32_t others = 0;
    for (uint32_t i = 0; (b->points || b->parts) && i < filled; i++)
        others += activities[i].name >= b->point_name ||
                  (activities[i].flags & KPT_ACTIVITY_CONTINUED) != 0;
    return others;
}

int kpti_batcher_add_ends(kpti_batcher *b, uint32_t track, uint32_t filled, uint64_t *delivered)
{
    kpt_activity *const activities = kpti_batcher_next(b);
    kpti_assert(filled <= b->capacity - b->count);
    if (b->end_ns != INT64_MAX) filled = apply_end(b, activities, filled);
    *delivered += filled - count_others(b, activities, filled);
    if (b->needed) filled = keep_needed(b, activities, filled);
    if (filled && track != b->last_thread) kpti_batcher_add_thread(b, track);
    for (uint32_t i = 0; i < filled; i++) {
        kpt_activity *const a = &activities[i];
        const kpti_name_note note = kpti_batcher_note(b, a->name);
        a->phase = KPT_PHASE_COMPLETE;
        a->kind = (uint16_t)note.kind;
        if (a->name == b->range_begin_name)
            kpti_batcher_name_range(b, a, a);
        else if (b->has_inputs && kpti_batcher_has_inputs(a, note))
            kpti_batcher_add_text(b, a->line);
        else
            a->line = kpti_batcher_line(a, note);
    }
    b->count += filled;
    return b->count < b->capacity || kpti_batcher_send(b) == KPT_OK;
}

kpt_status kpti_batcher_send(kpti_batcher *b)
{
    kpt_batch batch;
    kpti_assert(kpti_batcher_is_valid(b));
    if (b->status != KPT_OK || b->count == 0) return b->status;
    KPT_INIT(&batch);
    batch.order = b->delivery->order;
    batch.activities = b->activities;
    batch.names = b->names;
    batch.threads = b->threads;
    batch.activity_count = b->count;
    batch.activity_stride = sizeof *b->activities;
    batch.name_count = b->name_count;
    batch.name_stride = sizeof *b->names;
    batch.thread_count = b->thread_count;
    batch.thread_stride = sizeof *b->threads;
    b->count = b->name_count = b->thread_count = 0;
    b->status = b->delivery->sink(b->delivery->sink_ctx, &batch);
    return b->status;
}
