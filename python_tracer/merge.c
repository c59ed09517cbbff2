/* merge.c: see merge.h. In order TIME a begin and an end are taken from the replay as they are. In
 * order START a call is delivered when it begins, so its end has to be known: from a first pass, which
 * a minimum duration needs as well. */
#include "merge.h"

#include "fate.h"

/* One thread in the merge, and its next step. */
typedef struct lane {
    int64_t when_ns;
    uint32_t track;
    kpti_step step;
    kpti_call_record *call;
    kpti_replay *replay;
    uint64_t gcs; /* begun so far */
    kpti_fates fates;
} lane;

typedef struct merge {
    kpti_batcher *b;
    lane *lanes;
    lane **heap; /* of lanes that have a step: each not later than its children, at 2i+1 and 2i+2 */
    uint32_t count;
    int by_start;
    int with_fates;
    uint64_t last_id;
} merge;

/* Whether the call that begins is delivered; with its end and flags where they are needed now. */
static int begins(const merge *m, lane *l)
{
    kpti_call_record *call = l->call;
    uint32_t fate;
    if (!m->with_fates) return kpti_batcher_wants(m->b, call->start_ns);
    fate = kpti_fates_flags(&l->fates, call->index);
    if (m->by_start && kpti_call_is_gc(call)) {
        call->value1 = l->fates.gcs[l->gcs].value1;
        call->value2 = l->fates.gcs[l->gcs++].value2;
    }
    if (!fate || !m->by_start) return fate != 0;
    call->flags = fate & ~(uint32_t)KPTI_FATE_DELIVERED;
    call->end_ns = kpti_fates_end(&l->fates, call->index);
    /* Unless the host's converter told other times in the first pass. */
    if (call->end_ns < call->start_ns) call->end_ns = call->start_ns;
    return 1;
}

/* Moves on to the next step that is delivered; l->step is another where there is none. */
static void move_on(const merge *m, lane *l)
{
    for (;;) {
        l->step = kpti_replay_next(l->replay, &l->call);
        if (l->step == KPTI_STEP_BEGIN) {
            l->when_ns = l->call->end_ns = l->call->start_ns;
            if (begins(m, l)) return;
            l->call->id = 0; /* nor is its end, nor are its callees */
        } else if (l->step == KPTI_STEP_END) {
            if (m->by_start || !l->call->id) continue;
            kpti_batcher_cut(m->b, &l->call->end_ns, &l->call->flags);
            l->when_ns = l->call->end_ns;
            return;
        } else {
            return;
        }
    }
}

static int earlier(const lane *a, const lane *b)
{
    return a->when_ns < b->when_ns || (a->when_ns == b->when_ns && a->track < b->track);
}

/* Lets the lane at I sink to where it belongs. */
static void sink(merge *m, uint32_t i)
{
    lane *moved = m->heap[i];
    for (;;) {
        uint32_t child = 2 * i + 1;
        if (child >= m->count) break;
        if (child + 1 < m->count && earlier(m->heap[child + 1], m->heap[child])) child++;
        if (!earlier(m->heap[child], moved)) break;
        m->heap[i] = m->heap[child];
        i = child;
    }
    m->heap[i] = moved;
}

static int has_step(const lane *l)
{
    return l->step == KPTI_STEP_BEGIN || l->step == KPTI_STEP_END;
}

static uint32_t phase_of(const merge *m, const lane *l)
{
    if (m->by_start) return KPT_PHASE_COMPLETE;
    return l->step == KPTI_STEP_BEGIN ? KPT_PHASE_BEGIN : KPT_PHASE_END;
}

/* Delivers step after step. 0 when there is no memory. */
static int run(merge *m)
{
    while (m->count) {
        lane *first = m->heap[0];
        if (first->step == KPTI_STEP_BEGIN) first->call->id = ++m->last_id;
        if (!kpti_batcher_add(m->b, first->track, first->call, phase_of(m, first))) return 1;
        move_on(m, first);
        if (first->step == KPTI_STEP_NO_MEMORY) return 0;
        if (!has_step(first)) m->heap[0] = m->heap[--m->count];
        if (m->count > 1) sink(m, 0);
    }
    return 1;
}

/* Readies the lanes that have anything to deliver. 0 when there is no memory. */
static int begin_lanes(merge *m)
{
    for (uint32_t t = 0; t < m->b->recording->track_count; t++) {
        lane *l = &m->lanes[t];
        l->track = t;
        if (m->with_fates && !kpti_fates_find(&l->fates, m->b, t, m->by_start)) return 0;
        l->replay = kpti_batcher_replay(m->b, t, 1);
        if (!l->replay) return 0;
        move_on(m, l);
        if (l->step == KPTI_STEP_NO_MEMORY) return 0;
        if (has_step(l)) m->heap[m->count++] = l;
    }
    for (uint32_t i = m->count / 2; i-- > 0;)
        sink(m, i);
    return 1;
}

static void end_lanes(merge *m, uint64_t *repairs)
{
    for (uint32_t t = 0; t < m->b->recording->track_count; t++) {
        lane *l = &m->lanes[t];
        if (l->replay) *repairs += kpti_replay_repairs(l->replay);
        kpti_replay_free(l->replay);
        kpti_fates_free(&l->fates);
    }
}

int kpti_merge(kpti_batcher *b, uint64_t *repairs)
{
    const kpti_env *env = b->env;
    const size_t tracks = b->recording->track_count;
    merge m = {.b = b, .by_start = b->delivery->order == KPT_ORDER_START};
    int fine = 0;
    m.with_fates = m.by_start || b->recording->min_duration_ns > 0;
    m.lanes = kpti_alloc(env, tracks * sizeof *m.lanes);
    m.heap = kpti_alloc(env, tracks * sizeof(lane *));
    if (m.lanes && m.heap) fine = begin_lanes(&m) && run(&m);
    if (m.lanes) end_lanes(&m, repairs);
    kpti_free(env, m.heap, tracks * sizeof(lane *));
    kpti_free(env, m.lanes, tracks * sizeof *m.lanes);
    return fine;
}
