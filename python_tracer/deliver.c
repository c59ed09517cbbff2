/* deliver.c: a delivery, and its default order: thread after thread, each call when it ends. The
 * orders that go by time are in merge.c.
 *
 * Ids are 1, 2, 3 … in all orders, without gaps: what is not delivered gets none. */
#include "deliver.h"

#include "fate.h"
#include "merge.h"

/* Delivers every call that is wanted. Those that are not began after all others, so that the replay's
 * ids have no gaps. */
static kpti_step deliver_all(kpti_batcher *b, kpti_replay *replay, uint32_t track,
                             uint64_t *next_id)
{
    kpti_step step = KPTI_STEP_END;
    while (step == KPTI_STEP_END) {
        uint32_t filled;
        step = kpti_replay_fill(replay, &b->activities[b->count], b->room - b->count, &filled);
        if (!kpti_batcher_complete(b, track, filled, next_id)) return KPTI_STEP_DONE;
    }
    return step;
}

/* The same, but only the calls that FATES names; they are numbered as they begin. */
static kpti_step deliver_some(kpti_batcher *b, kpti_replay *replay, uint32_t track,
                              const kpti_fates *fates, uint64_t *next_id)
{
    kpti_call_record *call;
    kpti_step step;
    while ((step = kpti_replay_next(replay, &call)) != KPTI_STEP_DONE) {
        if (step == KPTI_STEP_NO_MEMORY) return step;
        if (step == KPTI_STEP_BEGIN) {
            call->id = kpti_fates_flags(fates, call->index) ? (*next_id)++ : 0;
        } else if (call->id) {
            kpti_batcher_cut(b, &call->end_ns, &call->flags);
            if (!kpti_batcher_add(b, track, call, KPT_PHASE_COMPLETE)) return KPTI_STEP_DONE;
        }
    }
    return step;
}

/* 0 when there is no memory. */
static int deliver_track(kpti_batcher *b, uint32_t track, uint64_t *next_id, uint64_t *repairs)
{
    const int some = b->recording->min_duration_ns > 0;
    kpti_fates fates = {0};
    kpti_replay *replay = NULL;
    kpti_step step = KPTI_STEP_NO_MEMORY;
    if (!some || kpti_fates_find(&fates, b, track, 0))
        replay = kpti_batcher_replay(b, track, *next_id);
    if (replay) {
        step = some ? deliver_some(b, replay, track, &fates, next_id)
                    : deliver_all(b, replay, track, next_id);
        *repairs += kpti_replay_repairs(replay);
    }
    kpti_replay_free(replay);
    kpti_fates_free(&fates);
    return step != KPTI_STEP_NO_MEMORY;
}

static int deliver_threads(kpti_batcher *b, uint64_t *repairs)
{
    uint64_t next_id = 1;
    int fine = 1;
    for (uint32_t track = 0; fine && b->status == KPT_OK && track < b->recording->track_count;
         track++)
        fine = deliver_track(b, track, &next_id, repairs);
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
    status = fine ? kpti_batcher_send(&b)
                  : kpti_fail(error, KPT_E_MEMORY,
                              "delivery: no memory; some of the events may have come already");
    kpti_batcher_free(&b);
    return status;
}
