#include "writers/profile.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/batch_records.h"
#include "core/base/growable_array.h"
#include "core/base/u64_map.h"
#include "writers/annotations/notes.h"

/* Calls of one function, next to each other, whose time is in the function's total. They may turn out to be
 * inside another call of the same function. */
typedef struct counted {
    uint64_t id; /* of one of the calls */
    uint64_t ns; /* of all these calls */
} counted;

/* Invariant: the ids in counted grow. Between two of them there is a call that was open when the second was
 * added, and that could be of the same function. */
typedef struct function {
    kpt_name name;
    uint32_t has_name;
    uint32_t row;  /* index of the row + 1; 0: no row */
    uint32_t step; /* step of the row */
    /* the profile's thread_number for which counted, and the row by thread, are valid */
    uint32_t thread_number;
    uint32_t count;
    uint32_t capacity;
    uint32_t tidy_at; /* count at which tidy is called */
    counted *counted;
} function;

typedef struct known_thread {
    kpt_thread raw;
    uint32_t has_raw;
} known_thread;

struct kpti_profile {
    kpti_heap heap;
    uint32_t flags;
    kpt_status status; /* the first failure */
    uint64_t calls;
    function *functions;
    uint32_t function_capacity;
    known_thread *threads; /* by index, from first_thread on */
    uint32_t thread_capacity;
    uint32_t first_thread;
    kpti_profile_take_fn take; /* NULL: all rows are kept */
    void *take_ctx;
    uint32_t kept_rows; /* 0: all rows are kept */
    kpti_profile_sort kept_sort;
    kpti_profile_row *rows;
    uint32_t row_capacity;
    uint32_t row_count;
    const kpti_profile_step *steps;
    uint32_t step_count;
    /* of this thread, or of all threads: index of the row + 1, by function and step */
    kpti_u64_map rows_by_step;
    uint32_t thread_number; /* number of threads so far; the calls of a thread are contiguous */
    uint32_t thread;        /* index of the current thread */
    uint64_t *spent_ns;     /* by depth: time in ended calls whose parent has not ended */
    uint32_t spent_capacity;
    uint64_t *open; /* by depth: ids of open calls; 0: not known */
    uint32_t open_capacity;
    uint32_t open_count;
};

enum { TIDY_AT_LEAST = 64 };
enum { PASSED_ROWS = 1 << 14 }; /* rows that are passed at once, and those of one thread */

/* --- the time including callees ----------------------------------------------------------------- */

/* Merges entries between which no open call begins; they can no longer be separated by a call that ends later.
 * The innermost open call around an ended call is always known, since it is the parent of that call or of a
 * call around it. */
static void tidy(const kpti_profile *p, function *f)
{
    uint32_t kept = 0;
    uint32_t depth = 0;
    for (uint32_t i = 1; i < f->count; i++) {
        while (depth < p->open_count && p->open[depth] <= f->counted[kept].id)
            depth++;
        if (depth < p->open_count && p->open[depth] < f->counted[i].id)
            f->counted[++kept] = f->counted[i];
        else
            f->counted[kept].ns += f->counted[i].ns;
    }
    f->count = kept + 1;
    f->tidy_at = f->count * 2 > TIDY_AT_LEAST ? f->count * 2 : TIDY_AT_LEAST;
}

/* Counts NS of a call. *INSIDE_NS receives the part that was counted before, in calls inside it. Children are
 * delivered before their parents and have larger ids; the calls before them have smaller ids. */
static kpt_status count_once(kpti_profile *p, function *f, const kpt_activity *a, uint64_t ns,
                             uint64_t *inside_ns)
{
    kpt_status status;
    *inside_ns = 0;
    while (f->count && f->counted[f->count - 1].id > a->id)
        *inside_ns += f->counted[--f->count].ns;
    if (f->count && f->counted[f->count - 1].id > a->parent_id) { /* a sibling, or inside one */
        f->counted[f->count - 1].ns += ns;
        return KPT_OK;
    }
    status = kpti_array_reach(&p->heap, &f->counted, &f->capacity, f->count, sizeof *f->counted);
    if (status != KPT_OK) return status;
    f->counted[f->count++] = (counted){a->id, ns};
    if (f->count >= f->tidy_at) tidy(p, f);
    return KPT_OK;
}

/* --- calls ------------------------------------------------------------------------------------ */

/* Records that the callers of A are open, and that all calls as deep as A or deeper have ended. */
static kpt_status note_open(kpti_profile *p, const kpt_activity *a)
{
    kpt_status status;
    if (p->open_count > a->depth) p->open_count = a->depth;
    if (!a->depth) return KPT_OK;
    status = kpti_array_reach(&p->heap, &p->open, &p->open_capacity, a->depth, sizeof *p->open);
    if (status != KPT_OK) return status;
    while (p->open_count < a->depth)
        p->open[p->open_count++] = 0;
    p->open[a->depth - 1] = a->parent_id;
    return KPT_OK;
}

static kpt_status own_time(kpti_profile *p, const kpt_activity *a, uint64_t ns, uint64_t *own_ns)
{
    kpt_status status = kpti_array_reach(&p->heap, &p->spent_ns, &p->spent_capacity, a->depth + 1,
                                         sizeof *p->spent_ns);
    if (status != KPT_OK) return status;
    *own_ns = ns - p->spent_ns[a->depth + 1];
    p->spent_ns[a->depth + 1] = 0;
    p->spent_ns[a->depth] += ns;
    return KPT_OK;
}

static kpt_status find_row(kpti_profile *p, const kpt_activity *a, function **out)
{
    const uint32_t step = kpti_profile_step_at(p->steps, p->step_count, a->start_ns);
    uint32_t *by_step = NULL;
    kpt_status status = kpti_array_reach(&p->heap, &p->functions, &p->function_capacity, a->name,
                                         sizeof *p->functions);
    function *f;
    if (status != KPT_OK) return status;
    *out = f = &p->functions[a->name];
    if (f->thread_number != p->thread_number) {
        f->thread_number = p->thread_number;
        f->count = 0;
        f->tidy_at = TIDY_AT_LEAST;
        if (p->flags & KPTI_PROFILE_BY_THREAD) f->row = 0;
    }
    if (f->row && f->step == step) return KPT_OK;
    f->step = step;
    if (p->step_count) {
        by_step = kpti_u64_map_at(&p->rows_by_step, (uint64_t)a->name << 32 | step);
        if (!by_step) return KPT_E_MEMORY;
        f->row = *by_step;
        if (f->row) return KPT_OK;
    }
    status = kpti_array_reach(&p->heap, &p->rows, &p->row_capacity, p->row_count, sizeof *p->rows);
    if (status != KPT_OK) return status;
    p->rows[p->row_count] =
        (kpti_profile_row){.name = a->name, .step = step, .kind = a->kind, .min_ns = UINT64_MAX};
    if (p->flags & KPTI_PROFILE_BY_THREAD) p->rows[p->row_count].thread = a->thread;
    f->row = ++p->row_count;
    if (by_step) *by_step = f->row;
    return KPT_OK;
}

/* Forgets the threads before THREAD. */
static void forget_threads(kpti_profile *p, uint32_t thread)
{
    uint32_t kept = 0;
    if (thread <= p->first_thread || !p->thread_capacity) return;
    if (thread - p->first_thread < p->thread_capacity)
        kept = p->thread_capacity - (thread - p->first_thread);
    memmove(p->threads, p->threads + (p->thread_capacity - kept), kept * sizeof *p->threads);
    memset(p->threads + kept, 0, (p->thread_capacity - kept) * sizeof *p->threads);
    p->first_thread = thread;
}

static int compare_rows(const void *left, const void *right, void *offset)
{
    const kpti_profile_row *a = left;
    const kpti_profile_row *b = right;
    uint64_t x;
    uint64_t y;
    memcpy(&x, (const char *)left + *(const size_t *)offset, sizeof x);
    memcpy(&y, (const char *)right + *(const size_t *)offset, sizeof y);
    if (x != y) return x < y ? 1 : -1;
    if (a->name != b->name) return a->name < b->name ? -1 : 1;
    if (a->thread != b->thread) return a->thread < b->thread ? -1 : 1;
    return (a->step > b->step) - (a->step < b->step);
}

static void sort_rows(kpti_profile *p, kpti_profile_sort sort)
{
    static const size_t offsets[] = {
        [KPTI_PROFILE_BY_OWN] = offsetof(kpti_profile_row, own_ns),
        [KPTI_PROFILE_BY_TOTAL] = offsetof(kpti_profile_row, total_ns),
        [KPTI_PROFILE_BY_CALLS] = offsetof(kpti_profile_row, calls),
        [KPTI_PROFILE_BY_MAX] = offsetof(kpti_profile_row, max_ns),
    };
    size_t offset = offsets[sort];
    if (p->row_count) qsort_r(p->rows, p->row_count, sizeof *p->rows, compare_rows, &offset);
}

/* Passes the rows, whose threads have ended, if there are many, or forgets those that are not among the most. */
static kpt_status pass_rows(kpti_profile *p, uint32_t next_thread)
{
    kpt_status status;
    if (p->kept_rows && p->row_count / 2 >= p->kept_rows && p->row_count >= PASSED_ROWS) {
        sort_rows(p, p->kept_sort);
        p->row_count = p->kept_rows;
    }
    if (!p->take || p->row_count < PASSED_ROWS) return KPT_OK;
    status = p->take(p->take_ctx, p->rows, p->row_count);
    p->row_count = 0;
    forget_threads(p, next_thread);
    return status;
}

static kpt_status begin_thread(kpti_profile *p, uint32_t thread)
{
    const kpt_status status = pass_rows(p, thread);
    p->thread = thread;
    p->thread_number++;
    p->open_count = 0;
    if (p->flags & KPTI_PROFILE_BY_THREAD) kpti_u64_map_free(&p->rows_by_step);
    if (p->spent_capacity) p->spent_ns[0] = 0; /* the others are 0 once all roots were delivered */
    return status;
}

static kpt_status take_call(kpti_profile *p, const kpt_activity *a)
{
    uint64_t ns = (uint64_t)a->end_ns - (uint64_t)a->start_ns;
    uint64_t own_ns;
    uint64_t inside_ns;
    kpti_profile_row *row;
    function *f;
    kpt_status status = KPT_OK;
    if (a->thread != p->thread || !p->thread_number) status = begin_thread(p, a->thread);
    if (status == KPT_OK) status = find_row(p, a, &f);
    if (status == KPT_OK) status = note_open(p, a);
    if (status == KPT_OK) status = own_time(p, a, ns, &own_ns);
    if (status == KPT_OK) status = count_once(p, f, a, ns, &inside_ns);
    if (status != KPT_OK) return status;
    row = &p->rows[f->row - 1];
    row->calls++;
    row->own_ns += own_ns;
    row->total_ns += ns - inside_ns;
    if (ns < row->min_ns) row->min_ns = ns;
    if (ns > row->max_ns) row->max_ns = ns;
    p->calls++;
    return KPT_OK;
}

/* --- batches ---------------------------------------------------------------------------------- */

static kpt_status take_name(kpti_profile *p, const kpt_name *name)
{
    kpt_status status = kpti_array_reach(&p->heap, &p->functions, &p->function_capacity,
                                         name->index, sizeof *p->functions);
    if (status != KPT_OK) return status;
    p->functions[name->index].name = *name;
    p->functions[name->index].has_name = 1;
    return KPT_OK;
}

static kpt_status take_thread(kpti_profile *p, const kpt_thread *raw)
{
    kpt_status status;
    if (raw->index < p->first_thread) return KPT_E_UNSUPPORTED; /* threads come in their order */
    status = kpti_array_reach(&p->heap, &p->threads, &p->thread_capacity,
                              raw->index - p->first_thread, sizeof *p->threads);
    if (status != KPT_OK) return status;
    p->threads[raw->index - p->first_thread] = (known_thread){*raw, 1};
    return KPT_OK;
}

static kpt_status take_batch(kpti_profile *p, const kpt_batch *batch)
{
    kpt_status status = KPT_OK;
    if (!kpti_records_can_read(batch)) return KPT_E_SIZE;
    if (batch->order != KPT_ORDER_THREAD) return KPT_E_UNSUPPORTED;
    for (uint32_t i = 0; i < batch->name_count && status == KPT_OK; i++)
        status = take_name(p, kpti_record(batch->names, batch->name_stride, i));
    for (uint32_t i = 0; i < batch->thread_count && status == KPT_OK; i++)
        status = take_thread(p, kpti_record(batch->threads, batch->thread_stride, i));
    for (uint32_t i = 0; i < batch->activity_count && status == KPT_OK; i++) {
        const kpt_activity *a = kpti_record(batch->activities, batch->activity_stride, i);
        if (a->kind != KPT_KIND_POINT) status = take_call(p, a);
    }
    return status;
}

kpt_status kpti_profile_batch(void *profile, const kpt_batch *batch)
{
    kpti_profile *p = profile;
    if (p->status == KPT_OK) p->status = take_batch(p, batch);
    return p->status;
}

/* --- the result ------------------------------------------------------------------------------- */

const kpti_profile_row *kpti_profile_rows(kpti_profile *p, kpti_profile_sort sort, uint32_t *count)
{
    sort_rows(p, sort);
    *count = p->row_count;
    return p->rows;
}

void kpti_profile_keep(kpti_profile *p, kpti_profile_sort sort, uint32_t most)
{
    kpti_assert(p->flags & KPTI_PROFILE_BY_THREAD);
    p->kept_sort = sort;
    p->kept_rows = most;
}

const kpt_name *kpti_profile_name(const kpti_profile *p, uint32_t name)
{
    return name < p->function_capacity && p->functions[name].has_name ? &p->functions[name].name
                                                                      : NULL;
}

const kpt_thread *kpti_profile_thread(const kpti_profile *p, uint32_t thread)
{
    const uint32_t at = thread - p->first_thread; /* of a forgotten one it is large */
    return at < p->thread_capacity && p->threads[at].has_raw ? &p->threads[at].raw : NULL;
}

uint64_t kpti_profile_calls(const kpti_profile *p)
{
    return p->calls;
}

kpt_status kpti_profile_open(const kpti_heap *heap, uint32_t flags, kpti_profile **out)
{
    kpti_profile *p = kpti_heap_take(heap, sizeof *p);
    *out = p;
    if (!p) return KPT_E_MEMORY;
    *p = (kpti_profile){.heap = *heap, .flags = flags, .rows_by_step = {.heap = *heap}};
    return KPT_OK;
}

void kpti_profile_by_step(kpti_profile *p, const kpti_profile_step *steps, uint32_t count)
{
    p->steps = steps;
    p->step_count = count;
}

void kpti_profile_pass(kpti_profile *p, kpti_profile_take_fn take, void *ctx)
{
    kpti_assert(p->flags & KPTI_PROFILE_BY_THREAD);
    p->take = take;
    p->take_ctx = ctx;
}

kpt_status kpti_profile_pass_rest(kpti_profile *p)
{
    return p->row_count ? p->take(p->take_ctx, p->rows, p->row_count) : KPT_OK;
}

void kpti_profile_free(kpti_profile *p)
{
    kpti_heap heap;
    if (!p) return;
    heap = p->heap;
    for (uint32_t i = 0; i < p->function_capacity; i++)
        kpti_heap_give(&heap, p->functions[i].counted,
                       p->functions[i].capacity * sizeof *p->functions[i].counted);
    kpti_heap_give(&heap, p->functions, p->function_capacity * sizeof *p->functions);
    kpti_heap_give(&heap, p->threads, p->thread_capacity * sizeof *p->threads);
    kpti_u64_map_free(&p->rows_by_step);
    kpti_heap_give(&heap, p->rows, p->row_capacity * sizeof *p->rows);
    kpti_heap_give(&heap, p->spent_ns, p->spent_capacity * sizeof *p->spent_ns);
    kpti_heap_give(&heap, p->open, p->open_capacity * sizeof *p->open);
    kpti_heap_give(&heap, p, sizeof *p);
}
