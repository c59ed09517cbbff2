/* time_merge.c: see time_merge.h. Order TIME delivers begins and ends as they occur. Order START delivers a
 * call when it begins, so its cursor needs the end from a first pass. */
#include "core/recording/delivery/time_merge.h"

#include "core/base/assert.h"
#include "core/base/host_heap.h"
#include "core/recording/delivery/thread_cursor.h"
#include "core/recording/delivery/track_openings.h"

/* Invariant: between two steps, all tracks that may have an activity as early as the first cursor's are open. */
typedef struct merge {
    kpti_batcher *b;
    kpti_track_openings openings;
    /* open cursors that have more; each is not later than its children 2i+1 and 2i+2 */
    kpti_thread_cursor **heap;
    uint64_t capacity;
    uint32_t count;
    unsigned what;
    uint64_t *repairs;
} merge;

static int earlier(const kpti_thread_cursor *a, const kpti_thread_cursor *b)
{
    return a->when_ns < b->when_ns || (a->when_ns == b->when_ns && a->track < b->track);
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

/* Adds CURSOR to the heap, which has space for it. */
static void push(merge *m, kpti_thread_cursor *cursor)
{
    uint32_t i = m->count++;
    for (; i && earlier(cursor, m->heap[(i - 1) / 2]); i = (i - 1) / 2)
        m->heap[i] = m->heap[(i - 1) / 2];
    m->heap[i] = cursor;
    kpti_assert(is_heap_at(m, 0) && is_heap_at(m, i));
}

/* Returns until when the first cursor is the earliest, without that time. At equal times the lower track is earlier. */
static int64_t until_of_first(const merge *m)
{
    int64_t until = kpti_track_openings_ns(&m->openings);
    for (uint32_t i = 1; i < m->count && i <= 2; i++) {
        const kpti_thread_cursor *const other = m->heap[i];
        const int wins = m->heap[0]->track < other->track && other->when_ns < INT64_MAX;
        if (other->when_ns + wins < until) until = other->when_ns + wins;
    }
    return until;
}

/* Delivers the first activity of the first cursor, and those that are earlier than all of other tracks. Returns 0 if there
 * is no memory, or if the delivery is over. Threads mostly take turns, so there are usually many. */
static int run_first(merge *m, uint64_t *last_id)
{
    kpti_thread_cursor *const first = m->heap[0];
    const int64_t until_ns = until_of_first(m);
    kpti_assert(is_heap_at(m, 0));
    do {
        if (!kpti_batcher_add(m->b, kpti_thread_cursor_take(first, last_id)) ||
            !kpti_thread_cursor_move(first))
            return 0;
    } while (first->activity && first->when_ns < until_ns);
    return 1;
}

static void close_cursor(const merge *m, kpti_thread_cursor *cursor)
{
    kpti_thread_cursor_end(cursor, m->repairs);
    kpti_free(m->b->env, cursor, sizeof *cursor);
}

/* Opens the cursor of the next track, and puts it on the heap if it has activities. Returns 0 if there is no memory. */
static int open_next(merge *m)
{
    const uint32_t track = m->openings.items[m->openings.next++].track;
    kpti_thread_cursor *cursor;
    int fine;
    if (!kpti_host_array_reserve(m->b->env, &m->heap, &m->capacity, (uint64_t)m->count + 1,
                                 sizeof(kpti_thread_cursor *)))
        return 0;
    cursor = kpti_alloc(m->b->env, sizeof *cursor);
    if (!cursor) return 0;
    fine = kpti_thread_cursor_begin(cursor, m->b, track, m->what);
    if (fine && cursor->activity)
        push(m, cursor);
    else
        close_cursor(m, cursor);
    return fine;
}

/* Opens the tracks that the invariant requires, at least one if no cursor is open. Returns 0 if there is no memory. */
static int open_tracks(merge *m)
{
    while (m->openings.next < m->openings.count &&
           (!m->count || kpti_track_openings_ns(&m->openings) <= m->heap[0]->when_ns))
        if (!open_next(m)) return 0;
    return 1;
}

/* Returns 0 if there is no memory. */
static int run(merge *m)
{
    uint64_t last_id = 0;
    for (;;) {
        if (!open_tracks(m)) return 0;
        if (!m->count) return 1;
        if (!run_first(m, &last_id)) return m->b->status != KPT_OK;
        if (!m->heap[0]->activity) {
            close_cursor(m, m->heap[0]);
            m->heap[0] = m->heap[--m->count];
        }
        if (m->count > 1) sink(m, 0);
    }
}

int kpti_merge(kpti_batcher *b, uint64_t *repairs)
{
    const unsigned ends = b->delivery->order == KPT_ORDER_START ? 0 : KPTI_ENDS;
    merge m = {.b = b, .what = KPTI_BEGINS | ends | b->points, .repairs = repairs};
    const int fine = kpti_track_openings_find(&m.openings, b) && run(&m);
    while (m.count)
        close_cursor(&m, m.heap[--m.count]);
    kpti_free(b->env, m.heap, m.capacity * sizeof(kpti_thread_cursor *));
    kpti_track_openings_free(&m.openings, b);
    return fine;
}
