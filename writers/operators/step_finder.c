#include "writers/operators/step_finder.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/assert.h"
#include "core/base/batch_records.h"

typedef struct kpti_step_label {
    kpti_step_source source; /* KPTI_STEPS_OF_PROFILER or KPTI_STEPS_OF_OPTIMIZER */
    uint64_t number;         /* of a profiler's step */
    char *text;              /* of an optimizer, a copy: names of ranges end with the delivery */
    size_t text_bytes;
} label;

typedef struct kpti_open_step {
    uint64_t number; /* of the range */
    int64_t start_ns;
    uint32_t thread;
    uint32_t label;
    uint32_t flags;
} open_step;

typedef struct kpti_step_thread {
    int64_t first_ns;
    int is_known;
} step_thread;

enum { FLAGS_KEPT = KPT_ACTIVITY_BEGAN_BEFORE | KPT_ACTIVITY_ENDED_BY_STOP };
static const int64_t no_end = INT64_MAX;

void kpti_step_finder_init(kpti_step_finder *f, const kpti_heap *heap, const kpti_notes *notes)
{
    *f = (kpti_step_finder){.heap = *heap, .notes = notes, .last_ns = INT64_MIN};
    f->optimizer_of.heap = f->span_of.heap = *heap;
}

void kpti_step_finder_free(kpti_step_finder *f)
{
    for (uint32_t i = 0; i < f->label_count; i++)
        kpti_heap_give(&f->heap, f->labels[i].text, f->labels[i].text_bytes);
    kpti_heap_give(&f->heap, f->labels, f->label_capacity * sizeof *f->labels);
    kpti_heap_give(&f->heap, f->label_of, f->label_of_capacity * sizeof *f->label_of);
    kpti_heap_give(&f->heap, f->steps, f->step_capacity * sizeof *f->steps);
    kpti_heap_give(&f->heap, f->open, f->open_capacity * sizeof *f->open);
    kpti_heap_give(&f->heap, f->threads, f->thread_capacity * sizeof *f->threads);
    kpti_u64_map_free(&f->optimizer_of);
    kpti_u64_map_free(&f->span_of);
}

/* --- names -------------------------------------------------------------------------------------- */

/* Returns the text behind PREFIX, or an empty one if NAME does not begin with it. */
static kpt_str behind(kpt_str name, const char *prefix)
{
    const size_t size = strlen(prefix);
    if (name.size <= size || memcmp(name.data, prefix, size) != 0) return (kpt_str){"", 0};
    return (kpt_str){name.data + size, name.size - size};
}

/* Reads all of TEXT as a number. Returns 0 if it is none, or longer than any genuine one. */
static int read_number(kpt_str text, uint64_t *out)
{
    enum { MAX_DIGITS = 18 };
    *out = 0;
    if (!text.size || text.size > MAX_DIGITS) return 0;
    for (uint64_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') return 0;
        *out = *out * 10 + (uint64_t)(text.data[i] - '0');
    }
    return 1;
}

static kpt_status add_label(kpti_step_finder *f, const label *made)
{
    kpt_status status = kpti_array_reach(&f->heap, &f->labels, &f->label_capacity, f->label_count,
                                         sizeof *f->labels);
    if (status == KPT_OK) f->labels[f->label_count++] = *made;
    return status;
}

/* Each optimizer has one label, whatever number of names. */
static kpt_status label_optimizer(kpti_step_finder *f, kpt_str name, uint32_t *out)
{
    uint32_t *known = kpti_u64_map_at(&f->optimizer_of, kpti_text_key(name));
    label made = {.source = KPTI_STEPS_OF_OPTIMIZER, .text_bytes = (size_t)name.size};
    kpt_status status;
    if (!known) return KPT_E_MEMORY;
    if (!*known) {
        made.text = kpti_heap_take(&f->heap, made.text_bytes);
        if (!made.text) return KPT_E_MEMORY;
        memcpy(made.text, name.data, made.text_bytes);
        status = add_label(f, &made);
        if (status != KPT_OK) {
            kpti_heap_give(&f->heap, made.text, made.text_bytes);
            return status;
        }
        *known = f->label_count;
    }
    *out = *known;
    return KPT_OK;
}

static kpt_status take_name(kpti_step_finder *f, const kpt_name *name)
{
    const kpt_str shown = kpti_shown_name(name);
    label made = {.source = KPTI_STEPS_OF_PROFILER};
    kpt_status status;
    uint32_t number;
    if (read_number(behind(shown, "ProfilerStep#"), &made.number)) {
        status = add_label(f, &made);
        number = f->label_count;
    } else if (behind(shown, "Optimizer.step#").size) {
        status = label_optimizer(f, shown, &number);
    } else {
        return KPT_OK;
    }
    if (status == KPT_OK)
        status = kpti_array_reach(&f->heap, &f->label_of, &f->label_of_capacity, name->index,
                                  sizeof *f->label_of);
    if (status == KPT_OK) f->label_of[name->index] = number;
    return status;
}

kpt_str kpti_step_finder_name(const kpti_step_finder *f, const kpti_step *step,
                              char buffer[KPTI_MAX_STEP_NAME])
{
    if (step->source == KPTI_STEPS_OF_SPANS) return (kpt_str){"step", 4};
    if (step->source == KPTI_STEPS_OF_OPTIMIZER)
        return (kpt_str){f->labels[step->label].text, f->labels[step->label].text_bytes};
    (void)snprintf(buffer, KPTI_MAX_STEP_NAME, "ProfilerStep#%llu",
                   (unsigned long long)step->number);
    return (kpt_str){buffer, strlen(buffer)};
}

/* --- activities --------------------------------------------------------------------------------- */

static kpt_status add_step(kpti_step_finder *f, const kpti_step *step)
{
    kpt_status status =
        kpti_array_reach(&f->heap, &f->steps, &f->step_capacity, f->step_count, sizeof *f->steps);
    if (status == KPT_OK) f->steps[f->step_count++] = *step;
    return status;
}

static kpt_status begin_range(kpti_step_finder *f, const kpt_activity *a)
{
    const uint32_t named = a->name < f->label_of_capacity ? f->label_of[a->name] : 0;
    kpt_status status;
    if (!named) return KPT_OK;
    status =
        kpti_array_reach(&f->heap, &f->open, &f->open_capacity, f->open_count, sizeof *f->open);
    if (status == KPT_OK)
        f->open[f->open_count++] =
            (open_step){a->value0, a->start_ns, a->thread, named - 1, a->flags};
    return status;
}

static kpt_status end_range(kpti_step_finder *f, const kpt_activity *a)
{
    uint32_t at = f->open_count;
    open_step open;
    const label *named;
    while (at && (f->open[at - 1].number != a->value0 || f->open[at - 1].thread != a->thread))
        at--;
    if (!at) return KPT_OK;
    open = f->open[at - 1];
    f->open_count--;
    memmove(&f->open[at - 1], &f->open[at], (f->open_count - (at - 1)) * sizeof *f->open);
    named = &f->labels[open.label];
    return add_step(
        f, &(kpti_step){.start_ns = open.start_ns,
                        .end_ns = a->start_ns > open.start_ns ? a->start_ns : open.start_ns,
                        .number = named->number,
                        .thread = a->thread,
                        .source = named->source,
                        .flags = (open.flags | a->flags) & FLAGS_KEPT,
                        .label = open.label});
}

static kpt_status take_point(kpti_step_finder *f, const kpt_activity *a)
{
    const kpti_note *note = kpti_notes_get(f->notes, a->value0);
    const int is_begin = note && note->what == KPTI_NOTE_BEGIN;
    const kpti_note *begin =
        note && note->what == KPTI_NOTE_END ? kpti_notes_get(f->notes, note->partner) : note;
    uint32_t *known;
    kpt_status status;
    if (!begin || begin->what != KPTI_NOTE_BEGIN || !kpti_is_step_span(begin->name)) return KPT_OK;
    known = kpti_u64_map_at(&f->span_of, is_begin ? a->value0 : note->partner);
    if (!known) return KPT_E_MEMORY;
    if (is_begin) {
        status = add_step(f, &(kpti_step){.start_ns = a->start_ns,
                                          .end_ns = no_end,
                                          .thread = a->thread,
                                          .source = KPTI_STEPS_OF_SPANS,
                                          .flags = KPT_ACTIVITY_ENDED_BY_STOP});
        if (status == KPT_OK) *known = f->step_count;
        return status;
    }
    if (*known && f->steps[*known - 1].end_ns == no_end) {
        f->steps[*known - 1].end_ns = a->start_ns;
        f->steps[*known - 1].flags = 0;
    }
    return KPT_OK;
}

kpt_status kpti_step_finder_thread(kpti_step_finder *f, uint32_t thread, int64_t first_ns)
{
    kpt_status status =
        kpti_array_reach(&f->heap, &f->threads, &f->thread_capacity, thread, sizeof *f->threads);
    if (status == KPT_OK && !f->threads[thread].is_known)
        f->threads[thread] = (step_thread){first_ns, 1};
    return status;
}

kpt_status kpti_step_finder_marker(kpti_step_finder *f, const kpt_activity *a)
{
    kpt_status status = kpti_step_finder_thread(f, a->thread, a->start_ns);
    if (status != KPT_OK) return status;
    switch (a->kind) {
    case KPT_KIND_POINT:
        return take_point(f, a);
    case KPT_KIND_RANGE_BEGIN:
        return begin_range(f, a);
    case KPT_KIND_RANGE_END:
        return end_range(f, a);
    default:
        return KPT_OK;
    }
}

kpt_status kpti_step_finder_names(kpti_step_finder *f, const kpt_batch *batch)
{
    kpt_status status = KPT_OK;
    for (uint32_t i = 0; i < batch->name_count && status == KPT_OK; i++)
        status = take_name(f, kpti_record(batch->names, batch->name_stride, i));
    return status;
}

kpt_status kpti_step_finder_batch(void *finder, const kpt_batch *batch)
{
    kpti_step_finder *f = finder;
    kpt_status status;
    kpti_assert(!f->is_finished);
    if (!kpti_records_can_read(batch)) return KPT_E_SIZE;
    if (batch->order != KPT_ORDER_TIME) return KPT_E_UNSUPPORTED;
    status = kpti_step_finder_names(f, batch);
    for (uint32_t i = 0; i < batch->activity_count && status == KPT_OK; i++) {
        const kpt_activity *a = kpti_record(batch->activities, batch->activity_stride, i);
        status = kpti_step_finder_marker(f, a);
        if (a->end_ns > f->last_ns) f->last_ns = a->end_ns;
    }
    return status;
}

/* --- the steps ---------------------------------------------------------------------------------- */

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* Whether one clock makes both steps. */
static int is_same_clock(const kpti_step *a, const kpti_step *b)
{
    return a->thread == b->thread && (a->source != KPTI_STEPS_OF_OPTIMIZER || a->label == b->label);
}

/* By clock, then by start, the longer one first. */
static int by_clock(const void *left, const void *right)
{
    const kpti_step *a = left;
    const kpti_step *b = right;
    int order = compare(a->thread, b->thread);
    if (!order && a->source == KPTI_STEPS_OF_OPTIMIZER) order = compare(a->label, b->label);
    if (!order) order = compare(a->start_ns, b->start_ns);
    return order ? order : compare(b->end_ns, a->end_ns);
}

static int by_start(const void *left, const void *right)
{
    const kpti_step *a = left;
    const kpti_step *b = right;
    int order = compare(a->start_ns, b->start_ns);
    if (!order) order = compare(a->end_ns, b->end_ns);
    return order ? order : compare(a->thread, b->thread);
}

/* Keeps the steps of the best source, in the order of their clocks. */
static void keep_best(kpti_step_finder *f)
{
    kpti_step_source best = KPTI_STEPS_OF_NOTHING;
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->step_count; i++)
        if (f->steps[i].source > best) best = f->steps[i].source;
    for (uint32_t i = 0; i < f->step_count; i++) {
        if (f->steps[i].source != best) continue;
        f->steps[count] = f->steps[i];
        if (f->steps[count].end_ns == no_end) f->steps[count].end_ns = f->last_ns;
        count++;
    }
    f->step_count = count;
    if (count) qsort(f->steps, count, sizeof *f->steps, by_clock);
}

static void drop_inner(kpti_step_finder *f)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->step_count; i++) {
        const kpti_step *last = count ? &f->steps[count - 1] : NULL;
        if (last && is_same_clock(last, &f->steps[i]) && f->steps[i].end_ns <= last->end_ns)
            continue;
        f->steps[count++] = f->steps[i];
    }
    f->step_count = count;
}

/* Keeps the steps of the optimizer that made the most, and of those the first. A step begins where the last one ended. */
static void keep_one_optimizer(kpti_step_finder *f)
{
    uint32_t best = 0;
    uint32_t best_count = 0;
    int64_t last_ns;
    for (uint32_t i = 0, from = 0; i < f->step_count; i++) {
        if (i && !is_same_clock(&f->steps[i - 1], &f->steps[i])) from = i;
        if (i + 1 < f->step_count && is_same_clock(&f->steps[i], &f->steps[i + 1])) continue;
        if (i + 1 - from < best_count ||
            (i + 1 - from == best_count && f->steps[from].end_ns >= f->steps[best].end_ns))
            continue;
        best = from;
        best_count = i + 1 - from;
    }
    memmove(f->steps, &f->steps[best], best_count * sizeof *f->steps);
    f->step_count = best_count;
    last_ns = f->threads[f->steps[0].thread].first_ns;
    for (uint32_t i = 0; i < best_count; i++) {
        kpti_step *step = &f->steps[i];
        step->start_ns = last_ns < step->end_ns ? last_ns : step->end_ns;
        step->flags &= KPT_ACTIVITY_ENDED_BY_STOP;
        if (!i) step->flags |= KPT_ACTIVITY_BEGAN_BEFORE;
        last_ns = step->end_ns;
    }
}

const kpti_step *kpti_step_finder_steps(kpti_step_finder *f, uint32_t *count)
{
    if (!f->is_finished && f->step_count) {
        keep_best(f);
        drop_inner(f);
        if (f->steps[0].source == KPTI_STEPS_OF_OPTIMIZER) keep_one_optimizer(f);
        qsort(f->steps, f->step_count, sizeof *f->steps, by_start);
        if (f->steps[0].source != KPTI_STEPS_OF_PROFILER)
            for (uint32_t i = 0; i < f->step_count; i++)
                f->steps[i].number = i;
    }
    f->is_finished = 1;
    *count = f->step_count;
    return f->steps;
}
