/* time_merge.c: see time_merge.h. Order TIME delivers begins and ends as they occur. Order START delivers a
 * call when it begins, so its cursor needs the end from a first pass. */
#include "core/recording/delivery/time_merge.h"

#include "core/base/assert.h"
#include "core/recording/delivery/thread_cursor.h"

typedef struct merge {
    kpti_batcher *b;
    kpti_thread_cursor *cursors; /* by track */
    kpti_thread_cursor *
        *heap; /* cursors that have more; each is not later than its children 2i+1 and 2i+2 */
    uint32_t count;
} merge;

static int earlier(const kpti_thread_cursor *a, const kpti_thread_cursor *b)
{
    return a->when_ns < b->when_ns || (a->when_ns == b->when_ns && a < b);
}

/* Whether the cursor at I has an activity and is not later than its children. */
static inline int is_heap_at(const merge *m, uint32_t i)
{
    for (uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < m->count; child++)
        if (earlier(m->heap[child], m->heap[i])) return 0;
    return m->heap[i]->activity != NULL;
}

/* Moves the cursor at I down to its position in the heap. */
static void sink(merge *m, uint32_t i)
{
    kpti_thread_cursor *moved = m->heap[i];
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= m->count) break;
        if (child + 1 < m->count && earlier(m->heap[child + 1], m->heap[child])) child++;
        if (!earlier(m->heap[child], moved)) break;
        m->heap[i] = m->heap[child];
        i = child;
    }
    m->heap[i] = moved;
    kpti_assert(is_heap_at(m, i));
}

/* Returns the cursor whose next activity is the second earliest, or the first cursor if there is no other. */
static const kpti_thread_cursor *second(const merge *m)
{
    if (m->count < 2) return m->heap[0];
    return m->count > 2 && earlier(m->heap[2], m->heap[1]) ? m->heap[2] : m->heap[1];
}

/* Delivers the activities of the first cursor that are earlier than those of all others. Returns 0 if there is no
 * memory, or if the delivery is over. Threads mostly take turns, so there are usually many. */
static int run_first(merge *m, uint64_t *last_id)
{
    kpti_thread_cursor *const first = m->heap[0];
    const kpti_thread_cursor *const next = second(m);
    kpti_assert(is_heap_at(m, 0));
    do {
        if (!kpti_batcher_add(m->b, kpti_thread_cursor_take(first, last_id)) ||
            !kpti_thread_cursor_move(first))
            return 0;
    } while (first->activity && !earlier(next, first));
    return 1;
}

/* Returns 0 if there is no memory. */
static int run(merge *m)
{
    uint64_t last_id = 0;
    while (m->count) {
        if (!run_first(m, &last_id)) return m->b->status != KPT_OK;
        if (!m->heap[0]->activity) m->heap[0] = m->heap[--m->count];
        if (m->count > 1) sink(m, 0);
    }
    return 1;
}

/* Initialises the cursors, and puts those that have activities on the heap. Returns 0 if there is no memory. */
static int begin_cursors(merge *m)
{
    const unsigned ends = m->b->delivery->order == KPT_ORDER_START ? 0 : KPTI_ENDS;
    const unsigned what = KPTI_BEGINS | ends | m->b->points;
    for (uint32_t t = 0; t < m->b->recording->track_count; t++) {
        if (!kpti_thread_cursor_begin(&m->cursors[t], m->b, t, what)) return 0;
        if (m->cursors[t].activity) m->heap[m->count++] = &m->cursors[t];
    }
    for (uint32_t i = m->count / 2; i-- > 0;)
        sink(m, i);
    return 1;
}

int kpti_merge(kpti_batcher *b, uint64_t *repairs)
{
    const kpti_env *env = b->env;
    const size_t tracks = b->recording->track_count;
    merge m = {.b = b};
    int fine = 0;
    m.cursors = kpti_alloc(env, tracks * sizeof *m.cursors);
    m.heap = kpti_alloc(env, tracks * sizeof(kpti_thread_cursor *));
    if (m.cursors && m.heap) fine = begin_cursors(&m) && run(&m);
    for (size_t t = 0; m.cursors && t < tracks; t++)
        kpti_thread_cursor_end(&m.cursors[t], repairs);
    kpti_free(env, m.heap, tracks * sizeof(kpti_thread_cursor *));
    kpti_free(env, m.cursors, tracks * sizeof *m.cursors);
    return fine;
}
