#include "tests/native/fuzz/replay_check.h"

#include <stdio.h>
#include <stdlib.h>

static void require(int holds, const char *what, const kpt_activity *a)
{
    if (holds) return;
    (void)fprintf(stderr, "broken: %s\n", what);
    if (a)
        (void)fprintf(stderr,
                      "  id %llu parent %llu thread %u name %u kind %u phase %u flags %x depth %u "
                      "%lld to %lld\n",
                      (unsigned long long)a->id, (unsigned long long)a->parent_id, a->thread,
                      a->name, a->kind, a->phase, a->flags, a->depth, (long long)a->start_ns,
                      (long long)a->end_ns);
    abort();
}

static void *must_alloc(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size);
    if (!memory) abort();
    return memory;
}

void check_init(check *c, uint32_t order, uint32_t name_count, uint32_t thread_count)
{
    memset(c, 0, sizeof *c);
    c->order = order;
    c->name_count = name_count;
    c->thread_count = thread_count;
    c->names = must_alloc(name_count, 1);
    c->threads = must_alloc(thread_count, 1);
}

void check_free(check *c)
{
    free(c->activities);
    free(c->points);
    free(c->names);
    free(c->threads);
}

/* A range has no id, and its begin has a text as its name. */
static void check_range(const check *c, const kpt_activity *a)
{
    const int is_whole = c->order == KPT_ORDER_START && a->kind == KPT_KIND_RANGE_BEGIN;
    require(c->texts, "a range that was asked for", a);
    require(c->order != KPT_ORDER_START || is_whole, "by start, no end of a range", a);
    require(a->name < c->name_count && c->names[a->name], "the name of a range has come", a);
    require(a->thread < c->thread_count && c->threads[a->thread], "its thread has come", a);
    require(!a->id && a->phase == KPT_PHASE_COMPLETE, "no call", a);
    require(a->start_ns == a->end_ns || (is_whole && a->start_ns < a->end_ns), "its times", a);
    require(!c->end_ns || a->end_ns <= c->end_ns, "no range after the delivery", a);
    require(!a->line || (a->line < c->name_count && c->names[a->line]), "its inputs have come", a);
}

/* The texts of ranges and inputs have any index. */
static void take_name(check *c, const kpt_name *name)
{
    const uint32_t index = name->index;
    require(index < c->name_count || c->texts, "a name's index", NULL);
    if (index >= c->name_count) {
        c->names = realloc(c->names, (size_t)index + 1);
        if (!c->names) abort();
        memset(c->names + c->name_count, 0, (size_t)index + 1 - c->name_count);
        c->name_count = index + 1;
    }
    require(!c->names[index]++, "a name comes once", NULL);
    require(c->texts || !(name->flags & KPT_NAME_INPUTS), "inputs that were asked for", NULL);
    for (uint64_t i = 0; i < name->function.size; i++)
        c->bytes += (unsigned char)name->function.data[i]; /* all of them can be read */
}

static void check_tables(const check *c, const kpt_activity *a)
{
    require(a->name < c->name_count && c->names[a->name], "its name has come", a);
    require(a->thread < c->thread_count && c->threads[a->thread], "its thread has come", a);
}

static void add_point(check *c, const kpt_activity *a)
{
    check_tables(c, a);
    require(c->order != KPT_ORDER_START, "no points by start", a);
    require(!a->id && a->value0 && a->phase == KPT_PHASE_COMPLETE, "a point is no call", a);
    require(a->start_ns == a->end_ns, "a point takes no time", a);
    require(!c->end_ns || a->end_ns <= c->end_ns, "no point after the delivery", a);
    if (c->point_count == c->point_capacity) {
        c->point_capacity = c->point_capacity ? 2 * c->point_capacity : 16;
        c->points = realloc(c->points, c->point_capacity * sizeof *c->points);
        if (!c->points) abort();
    }
    c->points[c->point_count++] = (check_point){*a, c->count};
}

static void check_activity(const check *c, const kpt_activity *a)
{
    check_tables(c, a);
    require((a->kind >= KPT_KIND_PYTHON && a->kind <= KPT_KIND_GC) || a->kind == KPT_KIND_OPERATOR,
            "a known kind", a);
    if (a->kind == KPT_KIND_OPERATOR && a->line && c->texts)
        require(a->line < c->name_count && c->names[a->line], "its inputs have come", a);
    require(a->flags < (c->parts ? 2 : 1) * (uint32_t)KPT_ACTIVITY_CONTINUED, "known flags", a);
    require(a->start_ns <= a->end_ns, "no end before the start", a);
    require(!c->end_ns || a->end_ns <= c->end_ns, "no end after the delivery", a);
    if (c->order == KPT_ORDER_TIME)
        require(a->phase == KPT_PHASE_BEGIN || a->phase == KPT_PHASE_END, "a phase", a);
    else
        require(a->phase == KPT_PHASE_COMPLETE, "no phase", a);
    if (a->phase == KPT_PHASE_BEGIN)
        require(a->start_ns == a->end_ns, "a begin knows no end", a);
    else
        require((uint64_t)a->end_ns - (uint64_t)a->start_ns >= c->least_ns, "long enough", a);
}

kpt_status check_sink(void *ctx, const kpt_batch *batch)
{
    check *c = ctx;
    require(batch->order == c->order, "the order asked for", NULL);
    require(batch->activity_count > 0, "a batch holds something", NULL);
    require(!c->batch_size || batch->activity_count <= c->batch_size, "a small batch", NULL);
    for (uint32_t i = 0; i < batch->name_count; i++)
        take_name(c, &batch->names[i]);
    for (uint32_t i = 0; i < batch->thread_count; i++) {
        require(batch->threads[i].index < c->thread_count, "a thread's index", NULL);
        require(!c->threads[batch->threads[i].index]++, "a thread comes once", NULL);
    }
    for (uint32_t i = 0; i < batch->activity_count; i++) {
        if (batch->activities[i].kind == KPT_KIND_POINT) {
            add_point(c, &batch->activities[i]);
            continue;
        }
        if (batch->activities[i].kind == KPT_KIND_RANGE_BEGIN ||
            batch->activities[i].kind == KPT_KIND_RANGE_END) {
            check_range(c, &batch->activities[i]);
            continue;
        }
        if (c->count == c->capacity) {
            c->capacity = c->capacity ? 2 * c->capacity : 64;
            c->activities = realloc(c->activities, c->capacity * sizeof *c->activities);
            if (!c->activities) abort();
        }
        c->activities[c->count] = batch->activities[i];
        check_activity(c, &c->activities[c->count++]);
    }
    return KPT_OK;
}

static int64_t moment(const kpt_activity *a)
{
    return a->phase == KPT_PHASE_END ? a->end_ns : a->start_ns;
}

static int continued(const kpt_activity *a)
{
    return (a->flags & KPT_ACTIVITY_CONTINUED) != 0;
}

/* A call takes the next id; a further part has an id that was taken, unless no part before it was delivered. */
static void check_next_id(const kpt_activity *a, uint64_t *last_id)
{
    if (a->id == *last_id + 1)
        ++*last_id;
    else
        require(continued(a) && a->id <= *last_id, "numbered as they come", a);
}

/* Parents are there, in the same thread, around their children: in one of their parts. */
static void check_parents(const check *c)
{
    const kpt_activity **by_id = must_alloc(c->count + 1, sizeof *by_id);
    unsigned char *in_parts = must_alloc(c->count + 1, 1);
    for (size_t i = 0; i < c->count; i++) {
        const kpt_activity *a = &c->activities[i];
        if (a->phase == KPT_PHASE_BEGIN) continue;
        require(a->id >= 1 && a->id <= c->count, "ids from 1", a);
        require(!by_id[a->id] || continued(a) || continued(by_id[a->id]), "ids are unique", a);
        if (by_id[a->id]) in_parts[a->id] = 1;
        by_id[a->id] = a;
    }
    for (size_t i = 0; i < c->count; i++) {
        const kpt_activity *a = &c->activities[i];
        const kpt_activity *parent;
        require(a->parent_id < a->id, "numbered after its parent", a);
        parent = by_id[a->parent_id];
        require(a->depth == (parent ? parent->depth + 1 : 0), "one deeper than its parent", a);
        require(!a->parent_id || parent, "its parent is there", a);
        if (!parent) continue;
        require(parent->thread == a->thread, "its parent is of the thread", a);
        if (in_parts[a->parent_id]) continue;
        require(parent->start_ns <= a->start_ns && a->end_ns <= parent->end_ns, "inside it", a);
    }
    for (size_t i = 0; i < c->point_count; i++) {
        const kpt_activity *p = &c->points[i].activity;
        const kpt_activity *parent = p->parent_id <= c->count ? by_id[p->parent_id] : NULL;
        require(!p->parent_id || parent, "a point's parent is there", p);
        if (!parent) continue;
        require(parent->thread == p->thread, "a point's parent is of the thread", p);
        if (in_parts[p->parent_id]) continue;
        require(parent->start_ns <= p->start_ns && p->end_ns <= parent->end_ns, "in it", p);
        require((size_t)(parent - c->activities) >= c->points[i].after, "it has not ended", p);
    }
    free(by_id);
    free(in_parts);
}

static void check_thread_order(const check *c)
{
    unsigned char *left = must_alloc(c->thread_count, 1);
    unsigned char *ended = must_alloc(c->count + 1, 1);
    for (size_t i = 0; i < c->count; i++) {
        const kpt_activity *a = &c->activities[i];
        if (i > 0 && a[-1].thread != a->thread) left[a[-1].thread] = 1;
        require(!left[a->thread], "a thread in one part", a);
        require(i == 0 || a[-1].thread != a->thread || a[-1].end_ns <= a->end_ns, "by end", a);
        require(c->parts || !ended[a->parent_id], "before its parent", a);
        ended[a->id] = 1;
    }
    free(left);
    free(ended);
}

static void check_time_order(const check *c)
{
    uint64_t *open = must_alloc(c->thread_count, sizeof *open); /* the innermost of each thread */
    uint64_t begun = 0;
    size_t point = 0;
    for (size_t i = 0; i < c->count; i++) {
        const kpt_activity *a = &c->activities[i];
        require(i == 0 || moment(&a[-1]) <= moment(a), "by time", a);
        for (; point < c->point_count && c->points[point].after == i; point++) {
            const kpt_activity *p = &c->points[point].activity;
            require(p->parent_id == open[p->thread], "a point in what is open", p);
            require(p->start_ns <= moment(a), "a point by time", p);
            require(i == 0 || moment(&a[-1]) <= p->start_ns, "a point by time", p);
        }
        if (a->phase == KPT_PHASE_BEGIN) {
            check_next_id(a, &begun);
            require(a->parent_id == open[a->thread], "in what is open", a);
            open[a->thread] = a->id;
        } else {
            require(a->id == open[a->thread], "the innermost ends", a);
            open[a->thread] = a->parent_id;
        }
    }
    for (uint32_t t = 0; t < c->thread_count; t++)
        require(!open[t], "what begins ends", NULL);
    free(open);
}

static void check_start_order(const check *c)
{
    uint64_t begun = 0;
    for (size_t i = 0; i < c->count; i++) {
        const kpt_activity *a = &c->activities[i];
        check_next_id(a, &begun);
        require(i == 0 || a[-1].start_ns <= a->start_ns, "by start", a);
    }
}

void check_all(const check *c)
{
    check_parents(c);
    if (c->order == KPT_ORDER_THREAD) check_thread_order(c);
    if (c->order == KPT_ORDER_TIME) check_time_order(c);
    if (c->order == KPT_ORDER_START) check_start_order(c);
}

static int by_content(const void *left, const void *right)
{
    kpt_activity a = *(const kpt_activity *)left;
    kpt_activity b = *(const kpt_activity *)right;
    a.id = b.id = a.parent_id = b.parent_id = 0;
    a.phase = b.phase = 0;
    return memcmp(&a, &b, sizeof a);
}

static kpt_activity *contents(const check *c, size_t *count)
{
    kpt_activity *out = must_alloc(c->count, sizeof *out);
    *count = 0;
    for (size_t i = 0; i < c->count; i++) {
        if (c->activities[i].phase == KPT_PHASE_BEGIN) continue;
        out[*count] = c->activities[i];
        if (out[*count].kind == KPT_KIND_OPERATOR) /* the index of its inputs */
            out[*count].line = 0;
        ++*count;
    }
    qsort(out, *count, sizeof *out, by_content);
    return out;
}

void check_same(const check *a, const check *b)
{
    size_t a_count;
    size_t b_count;
    kpt_activity *x = contents(a, &a_count);
    kpt_activity *y = contents(b, &b_count);
    require(a_count == b_count, "as many in each order", NULL);
    for (size_t i = 0; i < a_count; i++)
        require(by_content(&x[i], &y[i]) == 0, "the same in each order", &x[i]);
    free(x);
    free(y);
}

static int by_point(const void *left, const void *right)
{
    kpt_activity a = ((const check_point *)left)->activity;
    kpt_activity b = ((const check_point *)right)->activity;
    a.parent_id = b.parent_id = 0;
    return memcmp(&a, &b, sizeof a);
}

void check_same_points(const check *a, const check *b)
{
    require(a->point_count == b->point_count, "as many points", NULL);
    if (!a->point_count) return;
    qsort(a->points, a->point_count, sizeof *a->points, by_point);
    qsort(b->points, b->point_count, sizeof *b->points, by_point);
    for (size_t i = 0; i < a->point_count; i++)
        require(by_point(&a->points[i], &b->points[i]) == 0, "the same points",
                &a->points[i].activity);
}
