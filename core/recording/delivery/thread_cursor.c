#include "core/recording/delivery/thread_cursor.h"

#include "core/base/assert.h"
#include "core/base/host_heap.h"

static int grow_ids(kpti_thread_cursor *c)
{
    return kpti_host_array_reserve(c->b->env, &c->ids, &c->id_capacity, c->id_capacity + 1,
                                   sizeof *c->ids);
}

static int by_start(const kpti_thread_cursor *c)
{
    return !(c->what & KPTI_ENDS);
}

/* Completes a call at its begin with the end and the flags from the first pass. */
static void complete(kpti_thread_cursor *c, const kpt_activity *a, uint32_t outcome)
{
    c->phase = KPT_PHASE_COMPLETE;
    c->flags = outcome & ~(uint32_t)KPTI_OUTCOME_DELIVERED;
    c->end_ns = kpti_call_outcomes_end(&c->outcomes, a->id - 1);
    /* The host's converter may have returned other times in the first pass. */
    if (c->end_ns < a->start_ns) c->end_ns = a->start_ns;
}

/* Returns whether a call that begins is delivered. */
static int begins(kpti_thread_cursor *c, kpt_activity *a)
{
    uint32_t outcome;
    if (!c->with_outcomes) return kpti_batcher_wants(c->b, a->start_ns);
    outcome = kpti_call_outcomes_flags(&c->outcomes, a->id - 1);
    if (by_start(c)) {
        if (a->name == c->b->gc_name) {
            kpti_assert(c->gcs < c->outcomes.gc_count);
            a->value1 = c->outcomes.gcs[c->gcs].value1;
            a->value2 = c->outcomes.gcs[c->gcs++].value2;
        }
        if (outcome) complete(c, a, outcome);
    }
    return outcome != 0;
}

/* Completes the begin of a range with its end from the first pass. Returns whether it is delivered; an end is not. */
static int complete_range(kpti_thread_cursor *c, const kpt_activity *a)
{
    int64_t end_ns;
    if (a->name != c->b->range_begin_name) return 0;
    kpti_assert(c->ranges < c->outcomes.range_count);
    end_ns = c->outcomes.ranges[c->ranges++].end_ns;
    c->end_ns = end_ns > a->start_ns ? end_ns : a->start_ns; /* as in complete() */
    kpti_batcher_cut(c->b, &c->end_ns, &c->flags);
    return kpti_batcher_wants(c->b, a->start_ns);
}

/* Returns whether the cursor's activity is delivered, if not all are. */
static int choose(kpti_thread_cursor *c, kpt_activity *a)
{
    if (a->phase == KPT_PHASE_BEGIN) {
        if (begins(c, a)) return 1;
        if (!(a->flags & KPT_ACTIVITY_CONTINUED)) c->ids[a->depth] = 0;
        c->ids[a->depth] |= KPTI_THREAD_CURSOR_HIDDEN;
        return 0;
    }
    if (kpti_thread_cursor_is_point(c))
        return by_start(c) ? complete_range(c, a) : kpti_batcher_wants(c->b, a->start_ns);
    kpti_batcher_cut(c->b, &c->end_ns, &c->flags);
    c->when_ns = c->end_ns;
    return !(c->ids[a->depth] & KPTI_THREAD_CURSOR_HIDDEN);
}

/* Replays the next block. Returns 0 if there is no memory. */
static int refill(kpti_thread_cursor *c)
{
    kpti_assert(c->count <= KPTI_THREAD_CURSOR_BLOCK);
    c->at = c->count = 0;
    if (c->left == KPTI_FILLED_MORE)
        c->left =
            kpti_replay_fill(c->replay, c->what, c->block, KPTI_THREAD_CURSOR_BLOCK, &c->count);
    return c->left != KPTI_FILLED_NO_MEMORY;
}

int kpti_thread_cursor_move_slow(kpti_thread_cursor *c)
{
    kpt_activity *a;
    do {
        if (c->at == c->count && !refill(c)) return 0;
        if (!c->count) {
            c->activity = NULL;
            return 1;
        }
        a = &c->block[c->at++];
        if (a->depth >= c->id_capacity && !grow_ids(c)) return 0;
        kpti_thread_cursor_set(c, a);
    } while (!c->takes_all && !choose(c, a));
    return 1;
}

int kpti_thread_cursor_begin(kpti_thread_cursor *c, kpti_batcher *b, uint32_t track, unsigned what)
{
    c->b = b;
    c->track = track;
    c->what = what;
    c->with_outcomes = by_start(c) || b->recording->min_duration_ns > 0;
    if (c->with_outcomes && !kpti_call_outcomes_prepass(&c->outcomes, b, track, by_start(c)))
        return 0;
    c->takes_all = !c->with_outcomes && b->end_ns == INT64_MAX;
    c->replay = kpti_batcher_replay(b, track, 1, KPTI_PARTS_NUMBERED);
    c->left = KPTI_FILLED_MORE;
    return c->replay && grow_ids(c) && kpti_thread_cursor_move(c);
}

void kpti_thread_cursor_end(kpti_thread_cursor *c, uint64_t *repairs)
{
    if (!c->b) return;
    if (c->replay) *repairs += kpti_replay_repairs(c->replay);
    kpti_replay_free(c->replay);
    kpti_call_outcomes_free(&c->outcomes);
    kpti_free(c->b->env, c->ids, c->id_capacity * sizeof *c->ids);
}
