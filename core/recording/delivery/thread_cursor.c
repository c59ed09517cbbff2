#include "core/recording/delivery/thread_cursor.h"

#include "core/base/host_heap.h"

static int grow_ids(kpti_thread_cursor *l)
{
    return kpti_host_array_reserve(l->b->env, &l->ids, &l->id_capacity, l->id_capacity + 1,
                                   sizeof *l->ids);
}

/* Completes a call at its begin with the end and the flags from the first pass. */
static void complete(kpti_thread_cursor *l, const kpt_activity *a, uint32_t outcome)
{
    l->phase = KPT_PHASE_COMPLETE;
    l->flags = outcome & ~(uint32_t)KPTI_OUTCOME_DELIVERED;
    l->end_ns = kpti_call_outcomes_end(&l->outcomes, a->id - 1);
    /* The host's converter may have returned other times in the first pass. */
    if (l->end_ns < a->start_ns) l->end_ns = a->start_ns;
}

/* Returns whether a call that begins is delivered. */
static int begins(kpti_thread_cursor *l, kpt_activity *a)
{
    uint32_t outcome;
    if (!l->with_outcomes) return kpti_batcher_wants(l->b, a->start_ns);
    outcome = kpti_call_outcomes_flags(&l->outcomes, a->id - 1);
    if (l->what == KPTI_BEGINS) {
        if (a->name == l->b->gc_name) {
            a->value1 = l->outcomes.gcs[l->gcs].value1;
            a->value2 = l->outcomes.gcs[l->gcs++].value2;
        }
        if (outcome) complete(l, a, outcome);
    }
    return outcome != 0;
}

/* Returns whether the cursor's activity is delivered, if not all are. */
static int choose(kpti_thread_cursor *l, kpt_activity *a)
{
    if (a->phase == KPT_PHASE_BEGIN) {
        if (begins(l, a)) return 1;
        if (!(a->flags & KPT_ACTIVITY_CONTINUED)) l->ids[a->depth] = 0;
        l->ids[a->depth] |= KPTI_THREAD_CURSOR_HIDDEN;
        return 0;
    }
    if (kpti_thread_cursor_is_point(l)) return kpti_batcher_wants(l->b, a->start_ns);
    kpti_batcher_cut(l->b, &l->end_ns, &l->flags);
    l->when_ns = l->end_ns;
    return !(l->ids[a->depth] & KPTI_THREAD_CURSOR_HIDDEN);
}

/* Replays the next block. Returns 0 if there is no memory. */
static int refill(kpti_thread_cursor *l)
{
    l->at = l->count = 0;
    if (l->left == KPTI_FILLED_MORE)
        l->left =
            kpti_replay_fill(l->replay, l->what, l->block, KPTI_THREAD_CURSOR_BLOCK, &l->count);
    return l->left != KPTI_FILLED_NO_MEMORY;
}

int kpti_thread_cursor_move_slow(kpti_thread_cursor *l)
{
    kpt_activity *a;
    do {
        if (l->at == l->count && !refill(l)) return 0;
        if (!l->count) {
            l->activity = NULL;
            return 1;
        }
        a = &l->block[l->at++];
        if (a->depth >= l->id_capacity && !grow_ids(l)) return 0;
        kpti_thread_cursor_set(l, a);
    } while (!l->takes_all && !choose(l, a));
    return 1;
}

int kpti_thread_cursor_begin(kpti_thread_cursor *l, const kpti_batcher *b, uint32_t track,
                             unsigned what)
{
    l->b = b;
    l->what = what;
    l->with_outcomes = what == KPTI_BEGINS || b->recording->min_duration_ns > 0;
    if (l->with_outcomes &&
        !kpti_call_outcomes_prepass(&l->outcomes, b, track, what == KPTI_BEGINS))
        return 0;
    l->takes_all = !l->with_outcomes && b->end_ns == INT64_MAX;
    l->replay = kpti_batcher_replay(b, track, 1, KPTI_PARTS_NUMBERED);
    l->left = KPTI_FILLED_MORE;
    return l->replay && grow_ids(l) && kpti_thread_cursor_move(l);
}

void kpti_thread_cursor_end(kpti_thread_cursor *l, uint64_t *repairs)
{
    if (!l->b) return;
    if (l->replay) *repairs += kpti_replay_repairs(l->replay);
    kpti_replay_free(l->replay);
    kpti_call_outcomes_free(&l->outcomes);
    kpti_free(l->b->env, l->ids, l->id_capacity * sizeof *l->ids);
}
