/* deliver.c: the delivery and its default order: thread after thread, each call when it ends. time_merge.c has
 * the orders by time. */
#include "core/recording/delivery/deliver.h"

#include "core/recording/delivery/thread_cursor.h"
#include "core/recording/delivery/time_merge.h"

/* Delivers the track's calls as the replay writes them. Calls that are left out began after the delivery's end,
 * so after all others; hence the replay's ids have no gaps. Returns 0 if there is no memory. */
static int deliver_all(kpti_batcher *b, uint32_t track, uint64_t *last_id, uint64_t *repairs)
{
    kpti_replay *replay = kpti_batcher_replay(b, track, *last_id + 1, KPTI_PARTS_SHARED);
    kpti_filled left = KPTI_FILLED_MORE;
    const unsigned what = KPTI_ENDS | b->points;
    if (!replay) return 0;
    while (left == KPTI_FILLED_MORE) {
        uint32_t count;
        left = kpti_replay_fill(replay, what, kpti_batcher_next(b), b->capacity - b->count, &count);
        if (!kpti_batcher_add_ends(b, track, count, last_id)) break;
    }
    *repairs += kpti_replay_repairs(replay);
    kpti_replay_free(replay);
    return left != KPTI_FILLED_NO_MEMORY;
}

/* The same if calls shorter than min_duration_ns are left out. Calls are numbered as they begin. */
static int deliver_some(kpti_thread_cursor *cursor, kpti_batcher *b, uint32_t track,
                        uint64_t *last_id)
{
    int fine = kpti_thread_cursor_begin(cursor, b, track, KPTI_BEGINS | KPTI_ENDS | b->points);
    while (fine && cursor->activity) {
        kpti_altered call = kpti_thread_cursor_take(cursor, last_id);
        if (call.phase != KPT_PHASE_BEGIN) {
            call.phase = KPT_PHASE_COMPLETE;
            if (!kpti_batcher_add(b, call)) break;
        }
        fine = kpti_thread_cursor_move(cursor);
    }
    return fine;
}

static int deliver_by_cursor(kpti_batcher *b, uint32_t track, uint64_t *last_id, uint64_t *repairs)
{
    kpti_thread_cursor *cursor = kpti_alloc(b->env, sizeof *cursor);
    int fine;
    if (!cursor) return 0;
    fine = deliver_some(cursor, b, track, last_id);
    kpti_thread_cursor_end(cursor, repairs);
    kpti_free(b->env, cursor, sizeof *cursor);
    return fine;
}

static int deliver_threads(kpti_batcher *b, uint64_t *repairs)
{
    uint64_t last_id = 0;
    int fine = 1;
    for (uint32_t t = 0; fine && b->status == KPT_OK && t < b->recording->track_count; t++)
        fine = b->recording->min_duration_ns ? deliver_by_cursor(b, t, &last_id, repairs)
                                             : deliver_all(b, t, &last_id, repairs);
    return fine;
}

kpt_status kpti_deliver(kpti_delivery_job *job, kpti_error *error)
{
    kpti_batcher b;
    kpt_status status;
    int fine;
    job->repairs = 0;
    if (job->recording->track_count == 0) return KPT_OK;
    fine = kpti_batcher_init(&b, job);
    if (fine)
        fine = job->delivery->order == KPT_ORDER_THREAD ? deliver_threads(&b, &job->repairs)
                                                        : kpti_merge(&b, &job->repairs);
    status = fine && !b.no_memory
                 ? kpti_batcher_send(&b)
                 : kpti_fail(error, KPT_E_MEMORY,
                             "delivery: no memory; the sink may have received some of the events");
    kpti_batcher_free(&b);
    return status;
}
