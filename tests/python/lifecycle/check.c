#include "tests/python/lifecycle/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* What is remembered of an activity: ids are 1, 2, 3 in this order, so it is an array. */
typedef struct span {
    int64_t start_ns;
    int64_t end_ns;
    int64_t last_child_end_ns;
    uint32_t thread;
    uint32_t depth;
} span;

typedef struct thread_state {
    int64_t last_root_end_ns;
    uint64_t ticks;
    uint64_t at_mark_a;
    int marked; /* mark_a was called, and mark_b not yet */
} thread_state;

enum { NAME_OTHER = 0, NAME_TICK, NAME_MARK_A, NAME_MARK_B };

struct lc_check {
    lc_result *out;
    span *spans; /* [0] is unused */
    uint64_t span_capacity;
    thread_state *threads; /* by index */
    uint32_t thread_capacity;
    uint8_t *names; /* NAME_*, by index */
    uint32_t name_capacity;
};

/* Room for index AT in an array of zeroed elements. */
static int reserve(void **array, uint64_t *capacity, uint64_t at, size_t size)
{
    uint64_t wanted = *capacity ? *capacity : 64;
    char *grown;
    while (wanted <= at)
        wanted *= 2;
    if (wanted == *capacity) return 1;
    grown = realloc(*array, wanted * size);
    if (!grown) return 0;
    memset(grown + *capacity * size, 0, (wanted - *capacity) * size);
    *array = grown;
    *capacity = wanted;
    return 1;
}

static int reserve32(void **array, uint32_t *capacity, uint32_t at, size_t size)
{
    uint64_t wide = *capacity;
    int done = reserve(array, &wide, at, size);
    *capacity = (uint32_t)wide;
    return done;
}

__attribute__((format(printf, 2, 3))) static void broken(lc_check *check, const char *format, ...)
{
    va_list args;
    if (check->out->broken++) return;
    va_start(args, format);
    (void)vsnprintf(check->out->why, sizeof check->out->why, format, args);
    va_end(args);
}

static int take_name(lc_check *check, const kpt_name *name)
{
    if (!reserve32((void **)&check->names, &check->name_capacity, name->index, 1)) return 0;
    check->names[name->index] = kpt_str_is(name->function, "tick")     ? NAME_TICK
                                : kpt_str_is(name->function, "mark_a") ? NAME_MARK_A
                                : kpt_str_is(name->function, "mark_b") ? NAME_MARK_B
                                                                       : NAME_OTHER;
    return 1;
}

static void end_pair(lc_result *out, thread_state *thread)
{
    uint64_t between = thread->ticks - thread->at_mark_a;
    if (!thread->marked) return;
    thread->marked = 0;
    if (!out->pairs || between < out->min) out->min = between;
    if (between > out->max) out->max = between;
    out->pairs++;
}

static void count(lc_check *check, const kpt_activity *a)
{
    thread_state *thread = &check->threads[a->thread];
    lc_result *out = check->out;
    out->activities++;
    if (a->flags & KPT_ACTIVITY_ENDED_BY_STOP) out->ended_open++;
    if (a->kind == KPT_KIND_GC) out->gc++;
    if (a->name >= check->name_capacity) return;
    switch (check->names[a->name]) {
    case NAME_TICK:
        out->ticks++;
        thread->ticks++;
        break;
    case NAME_MARK_A:
        thread->at_mark_a = thread->ticks;
        thread->marked = !(a->flags & KPT_ACTIVITY_BEGAN_BEFORE);
        break;
    case NAME_MARK_B:
        end_pair(out, thread);
        break;
    default:
        break;
    }
}

/* The order of starts, the place within the parent, and no overlap with the sibling before. */
static void check_place(lc_check *check, const kpt_activity *a)
{
    thread_state *thread = &check->threads[a->thread];
    span *parent = a->parent_id ? &check->spans[a->parent_id] : NULL;
    int64_t *before = parent ? &parent->last_child_end_ns : &thread->last_root_end_ns;
    unsigned long long id = a->id;
    if (a->start_ns > a->end_ns) broken(check, "%llu ends before it begins", id);
    if (id > 1 && a->start_ns < check->spans[id - 1].start_ns)
        broken(check, "%llu begins before the one before", id);
    if (parent && (a->start_ns < parent->start_ns || a->end_ns > parent->end_ns))
        broken(check, "%llu outlives its parent", id);
    if (parent && parent->thread != a->thread) broken(check, "%llu is in another thread", id);
    if (a->depth != (parent ? parent->depth + 1 : 0)) broken(check, "%llu: its depth", id);
    if (a->start_ns < *before) broken(check, "%llu overlaps the sibling before", id);
    *before = a->end_ns;
}

static int take_activity(lc_check *check, const kpt_activity *a)
{
    if (!reserve((void **)&check->spans, &check->span_capacity, a->id, sizeof(span))) return 0;
    if (a->thread >= check->thread_capacity || a->parent_id >= a->id ||
        a->id != check->out->activities + 1) {
        broken(check, "%llu: its id, thread or parent", (unsigned long long)a->id);
        return 1;
    }
    count(check, a);
    check_place(check, a);
    check->spans[a->id] = (span){a->start_ns, a->end_ns, INT64_MIN, a->thread, a->depth};
    return 1;
}

kpt_status lc_check_batch(void *ctx, const kpt_batch *batch)
{
    lc_check *check = ctx;
    for (uint32_t i = 0; i < batch->thread_count; i++) {
        const void *t = (const char *)batch->threads + (size_t)i * batch->thread_stride;
        uint32_t index = ((const kpt_thread *)t)->index;
        if (!reserve32((void **)&check->threads, &check->thread_capacity, index,
                       sizeof(thread_state)))
            return KPT_E_MEMORY;
        check->threads[index].last_root_end_ns = INT64_MIN;
        check->out->threads++;
    }
    for (uint32_t i = 0; i < batch->name_count; i++) {
        const void *n = (const char *)batch->names + (size_t)i * batch->name_stride;
        if (!take_name(check, n)) return KPT_E_MEMORY;
    }
    for (uint32_t i = 0; i < batch->activity_count; i++) {
        const void *a = (const char *)batch->activities + (size_t)i * batch->activity_stride;
        if (!take_activity(check, a)) return KPT_E_MEMORY;
    }
    return KPT_OK;
}

lc_check *lc_check_new(lc_result *out)
{
    lc_check *check = calloc(1, sizeof *check);
    memset(out, 0, sizeof *out);
    if (check) check->out = out;
    return check;
}

void lc_check_free(lc_check *check)
{
    free(check->spans);
    free(check->threads);
    free(check->names);
    free(check);
}
