#include "writers/format/note_spans.h"

#include "core/base/assert.h"

enum { CAME = 1 << 0, WRITTEN = 1 << 1 };

typedef struct kpti_note_state {
    int64_t ns; /* time of the note's point */
    uint32_t state;
    uint32_t end; /* for a begin: the number of its end note, or 0 */
} note_state;

typedef struct frame {
    uint32_t number;
    uint32_t is_over; /* its end was delivered, inside a call that is still open */
    uint64_t parent_id;
} frame;

typedef struct kpti_span_track {
    frame *frames;
    uint32_t capacity;
    uint32_t count;
} track_state;

static note_state *state_of(const kpti_spans *s, uint64_t number)
{
    kpti_assert(kpti_notes_get(s->notes, number));
    return &s->note_states[number - kpti_notes_first(s->notes)];
}

kpt_status kpti_spans_init(kpti_spans *s, const kpti_writer *writer)
{
    uint32_t count = writer->notes->count;
    uint32_t first = kpti_notes_first(writer->notes);
    s->heap = writer->heap;
    s->notes = writer->notes;
    if (!count) return KPT_OK;
    s->note_states = kpti_heap_take(&s->heap, count * sizeof *s->note_states);
    if (!s->note_states) return KPT_E_MEMORY;
    memset(s->note_states, 0, count * sizeof *s->note_states);
    for (uint32_t i = 0; i < count; i++) {
        const kpti_note *note = kpti_notes_get(s->notes, first + i);
        if (note->what == KPTI_NOTE_END && kpti_notes_get(s->notes, note->partner))
            state_of(s, note->partner)->end = first + i;
    }
    return KPT_OK;
}

void kpti_spans_free(kpti_spans *s)
{
    static const kpti_notes no_notes;
    for (uint32_t i = 0; i < s->track_capacity; i++)
        kpti_heap_give(&s->heap, s->track_states[i].frames,
                       s->track_states[i].capacity * sizeof *s->track_states[i].frames);
    kpti_heap_give(&s->heap, s->track_states, s->track_capacity * sizeof *s->track_states);
    if (s->note_states)
        kpti_heap_give(&s->heap, s->note_states, s->notes->count * sizeof *s->note_states);
    s->track_states = NULL;
    s->track_capacity = 0;
    s->frames = 0;
    s->note_states = NULL;
    s->notes = &no_notes; /* so that kpti_spans_next still works */
}

static void came(kpti_spans *s, const kpt_activity *point, uint32_t state)
{
    note_state *f = state_of(s, point->value0);
    f->ns = point->start_ns;
    f->state |= state;
}

void kpti_spans_came(kpti_spans *s, const kpt_activity *point)
{
    came(s, point, CAME | WRITTEN);
}

/* Returns whether the span ends on another thread. Such an end cannot close a frame of this thread. */
static int ends_elsewhere(const kpti_spans *s, uint64_t begin)
{
    uint32_t end = state_of(s, begin)->end;
    return end && kpti_notes_get(s->notes, end)->os_tid != kpti_notes_get(s->notes, begin)->os_tid;
}

kpt_status kpti_spans_begin(kpti_spans *s, const kpt_activity *point, int *is_frame)
{
    kpt_status status;
    track_state *l;
    came(s, point, CAME);
    *is_frame = !ends_elsewhere(s, point->value0);
    if (!*is_frame) return KPT_OK;
    status = kpti_array_reach(&s->heap, &s->track_states, &s->track_capacity, point->thread,
                              sizeof *s->track_states);
    if (status != KPT_OK) return status;
    l = &s->track_states[point->thread];
    status = kpti_array_reach(&s->heap, &l->frames, &l->capacity, l->count, sizeof *l->frames);
    if (status != KPT_OK) return status;
    l->frames[l->count++] = (frame){(uint32_t)point->value0, 0, point->parent_id};
    s->frames++;
    return KPT_OK;
}

static track_state *track_state_of(const kpti_spans *s, uint32_t thread)
{
    return thread < s->track_capacity && s->track_states[thread].count ? &s->track_states[thread]
                                                                       : NULL;
}

/* Returns the frame of BEGIN on THREAD, or NULL. */
static frame *find(const kpti_spans *s, uint32_t thread, uint32_t begin)
{
    const track_state *l = track_state_of(s, thread);
    for (uint32_t i = l ? l->count : 0; i-- > 0;)
        if (l->frames[i].number == begin) return &l->frames[i];
    return NULL;
}

uint32_t kpti_spans_end(kpti_spans *s, const kpt_activity *point, const kpti_note *end)
{
    frame *f = find(s, point->thread, end->partner);
    came(s, point, CAME);
    if (f && f->parent_id == point->parent_id) return end->partner;
    if (f) f->is_over = 1;
    return 0;
}

uint32_t kpti_spans_pop(kpti_spans *s, uint32_t thread)
{
    track_state *l = track_state_of(s, thread);
    kpti_assert(!l || s->frames);
    if (!l) return 0;
    s->frames--;
    return l->frames[--l->count].number;
}

void kpti_spans_forget(kpti_spans *s, uint32_t thread, uint32_t begin)
{
    frame *f = find(s, thread, begin);
    track_state *l = track_state_of(s, thread);
    if (!f) return;
    l->count--;
    s->frames--;
    memmove(f, f + 1, (size_t)(l->frames + l->count - f) * sizeof *f);
}

uint32_t kpti_spans_pop_of_call_slow(kpti_spans *s, const kpt_activity *call)
{
    const track_state *l = track_state_of(s, call->thread);
    const frame *f = l ? &l->frames[l->count - 1] : NULL;
    if (!f) return 0;
    if (call->kind == KPT_KIND_RANGE_BEGIN ? f->number <= call->value0 : f->parent_id != call->id)
        return 0;
    return kpti_spans_pop(s, call->thread);
}

uint32_t kpti_spans_pop_after_call_slow(kpti_spans *s, const kpt_activity *call)
{
    const track_state *l = track_state_of(s, call->thread);
    const frame *f = l ? &l->frames[l->count - 1] : NULL;
    if (!f || !f->is_over || f->parent_id != call->parent_id) return 0;
    if (call->kind == KPT_KIND_RANGE_BEGIN)
        return 0; /* the span did not end in a range, but in a call */
    return kpti_spans_pop(s, call->thread);
}

int kpti_spans_has_end(const kpti_spans *s, uint32_t begin)
{
    return state_of(s, begin)->end != 0;
}

void kpti_spans_written(kpti_spans *s, uint32_t begin)
{
    state_of(s, begin)->state |= WRITTEN;
    if (state_of(s, begin)->end) state_of(s, state_of(s, begin)->end)->state |= WRITTEN;
}

/* If the note's point was not delivered, the time is that of the note itself. */
int64_t kpti_spans_ns(const kpti_spans *s, uint32_t number)
{
    return state_of(s, number)->state & CAME ? state_of(s, number)->ns
                                             : kpti_notes_get(s->notes, number)->ns;
}

static kpti_loose loose(kpti_spans *s, const kpti_writer *writer, uint32_t begin)
{
    uint32_t end = state_of(s, begin)->end;
    const kpti_note *note = kpti_notes_get(s->notes, begin);
    kpti_loose span = {.note = note, .number = begin, .start_tid = note->os_tid};
    span.start_ns = kpti_spans_ns(s, begin);
    span.stopped = !end;
    span.end_ns = end ? kpti_spans_ns(s, end) : writer->last_ns;
    span.end_tid = end ? kpti_notes_get(s->notes, end)->os_tid : note->os_tid;
    if (span.end_ns < span.start_ns) span.end_ns = span.start_ns;
    kpti_spans_written(s, begin);
    return span;
}

/* An end whose begin was dropped: the span was open at the first activity that is left. */
static kpti_loose only_end(kpti_spans *s, const kpti_writer *writer, uint32_t end)
{
    const kpti_note *note = kpti_notes_get(s->notes, end);
    kpti_loose span = {.note = note,
                       .number = end,
                       .start_ns = writer->first_ns,
                       .end_ns = kpti_spans_ns(s, end),
                       .start_tid = note->os_tid,
                       .end_tid = note->os_tid,
                       .began_before = 1};
    if (span.start_ns > span.end_ns) span.start_ns = span.end_ns;
    return span;
}

int kpti_spans_next(kpti_spans *s, const kpti_writer *writer, uint32_t *number, kpti_loose *out)
{
    uint32_t first = kpti_notes_first(s->notes);
    if (*number < first) *number = first - 1;
    while (++*number - first < s->notes->count) {
        const kpti_note *note = kpti_notes_get(s->notes, *number);
        if (state_of(s, *number)->state & WRITTEN || note->what == KPTI_NOTE_TASK) continue;
        if (note->what == KPTI_NOTE_END && kpti_notes_get(s->notes, note->partner)) continue;
        if (note->what == KPTI_NOTE_BEGIN)
            *out = loose(s, writer, *number);
        else if (note->what == KPTI_NOTE_END)
            *out = only_end(s, writer, *number);
        else
            *out = (kpti_loose){.note = note,
                                .number = *number,
                                .start_ns = note->ns,
                                .end_ns = note->ns,
                                .start_tid = note->os_tid,
                                .end_tid = note->os_tid};
        return 1;
    }
    return 0;
}
