/* rules_order.c: R509–R517, R523–R525: the delivered activities: names, ids, parents, times, nesting, and
 * the three orders. */
#include "tests/abi/conform/recording.h"

static recording *taken(conform *c, uint32_t order)
{
    kpt_tracer t;
    conform_record(c, &t);
    return recording_take(c, &t, order);
}

static void names_first(conform *c)
{
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
        recording *r = taken(c, order);
        EXPECT(c, r->late_names == 0, "%u activities were delivered before their name or thread",
               r->late_names);
    }
}

/* Returns how often each id occurs, as an array of counts for the ids 1 … count. */
static uint32_t *count_ids(conform *c, const recording *r)
{
    uint32_t *counts = calloc(RECORDING_MAX + 1, sizeof *counts);
    if (!counts) abort();
    for (uint32_t i = 0; i < r->activity_count; i++) {
        uint64_t id = r->activities[i].id;
        EXPECT(c, id >= 1 && id <= r->activity_count, "there is an id %llu among %u activities",
               (unsigned long long)id, r->activity_count);
        if (r->activities[i].phase != KPT_PHASE_END) counts[id]++;
    }
    return counts;
}

static void unique_ids(conform *c)
{
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
        recording *r = taken(c, order);
        uint32_t *counts = count_ids(c, r);
        for (uint32_t id = 1; id <= r->activity_count; id++)
            EXPECT(c, counts[id] <= 1, "the id %u was used %u times", id, counts[id]);
        free(counts);
    }
}

/* Returns the activities by their ids. Ids that are out of range are skipped; another rule checks them. */
static const kpt_activity **by_id(const recording *r)
{
    const kpt_activity **found = calloc(RECORDING_MAX + 1, sizeof *found);
    if (!found) abort();
    for (uint32_t i = 0; i < r->activity_count; i++)
        if (r->activities[i].id <= RECORDING_MAX && r->activities[i].phase != KPT_PHASE_END)
            found[r->activities[i].id] = &r->activities[i];
    return found;
}

static const kpt_activity *parent_of(const kpt_activity *const *found, const kpt_activity *a)
{
    return a->parent_id <= RECORDING_MAX ? found[a->parent_id] : NULL;
}

static void parents_exist(conform *c)
{
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
        recording *r = taken(c, order);
        const kpt_activity **found = by_id(r);
        for (uint32_t i = 0; i < r->activity_count; i++) {
            const kpt_activity *a = &r->activities[i];
            const kpt_activity *parent = parent_of(found, a);
            if (a->parent_id == 0) continue;
            EXPECT(c, parent && parent->thread == a->thread,
                   "the parent %llu of %llu is not in the delivery, or is of another thread",
                   (unsigned long long)a->parent_id, (unsigned long long)a->id);
        }
        free(found);
    }
}

/* Makes a delivery with its own end time, later than all events. */
static recording *taken_until(conform *c, int64_t *end_ns)
{
    kpt_tracer t;
    kpt_delivery delivery;
    recording *r;
    conform_record(c, &t);
    r = recording_take(c, &t, KPT_ORDER_THREAD);
    *end_ns = 0;
    for (uint32_t i = 0; i < r->activity_count; i++)
        if (r->activities[i].end_ns > *end_ns) *end_ns = r->activities[i].end_ns;
    *end_ns += 12345;
    KPT_INIT(&delivery);
    delivery.end_ns = *end_ns;
    return recording_take_with(c, &t, delivery);
}

static void times(conform *c)
{
    int64_t end_ns;
    recording *r = taken_until(c, &end_ns);
    for (uint32_t i = 0; i < r->activity_count; i++) {
        const kpt_activity *a = &r->activities[i];
        EXPECT(c, a->start_ns <= a->end_ns, "activity %llu ends before it starts",
               (unsigned long long)a->id);
        EXPECT(c, a->end_ns <= end_ns, "activity %llu ends after the delivery",
               (unsigned long long)a->id);
    }
}

static void ended_by_stop(conform *c)
{
    int64_t end_ns;
    recording *r = taken_until(c, &end_ns);
    for (uint32_t i = 0; i < r->activity_count; i++) {
        const kpt_activity *a = &r->activities[i];
        if (a->flags & KPT_ACTIVITY_ENDED_BY_STOP)
            EXPECT(c, a->end_ns == end_ns, "activity %llu was ended by stop, but not at end_ns",
                   (unsigned long long)a->id);
    }
}

static int crosses(const kpt_activity *a, const kpt_activity *b)
{
    return a->thread == b->thread && a->start_ns < b->start_ns && b->start_ns < a->end_ns &&
           a->end_ns < b->end_ns;
}

static void nests(conform *c)
{
    recording *r = taken(c, KPT_ORDER_THREAD);
    const kpt_activity **found = by_id(r);
    for (uint32_t i = 0; i < r->activity_count; i++) {
        const kpt_activity *a = &r->activities[i];
        const kpt_activity *parent = parent_of(found, a);
        if (parent && a->start_ns <= a->end_ns)
            EXPECT(c, a->start_ns >= parent->start_ns && a->end_ns <= parent->end_ns,
                   "activity %llu is not within its parent %llu", (unsigned long long)a->id,
                   (unsigned long long)parent->id);
        for (uint32_t k = 0; k < i; k++)
            EXPECT(c, !crosses(a, &r->activities[k]) && !crosses(&r->activities[k], a),
                   "activities %llu and %llu overlap, but do not nest", (unsigned long long)a->id,
                   (unsigned long long)r->activities[k].id);
    }
    free(found);
}

static void thread_order(conform *c)
{
    recording *r = taken(c, KPT_ORDER_THREAD);
    char *ended = calloc(RECORDING_MAX + 1, 1); /* ids that were delivered */
    char *left = calloc(UINT16_MAX + 1, 1);     /* threads whose activities are complete */
    if (!ended || !left) abort();
    for (uint32_t i = 0; i < r->activity_count; i++) {
        const kpt_activity *a = &r->activities[i];
        uint64_t id = a->id <= RECORDING_MAX ? a->id : 0;
        if (i > 0 && r->activities[i - 1].thread != a->thread)
            left[r->activities[i - 1].thread & UINT16_MAX] = 1;
        EXPECT(c, a->phase == KPT_PHASE_COMPLETE, "activity %llu has a phase",
               (unsigned long long)a->id);
        EXPECT(c, !left[a->thread & UINT16_MAX], "thread %u is delivered in two parts", a->thread);
        EXPECT(c, a->parent_id < a->id, "activity %llu is numbered before its parent",
               (unsigned long long)a->id);
        EXPECT(c, a->parent_id > RECORDING_MAX || !ended[a->parent_id],
               "activity %llu is delivered after its parent", (unsigned long long)a->id);
        if (id) ended[id] = 1;
    }
    free(ended);
    free(left);
}

static int64_t moment(const kpt_activity *a)
{
    return a->phase == KPT_PHASE_END ? a->end_ns : a->start_ns;
}

static void time_order(conform *c)
{
    recording *r = taken(c, KPT_ORDER_TIME);
    int *open = calloc(RECORDING_MAX + 1, sizeof *open);
    if (!open) abort();
    for (uint32_t i = 0; i < r->activity_count; i++) {
        const kpt_activity *a = &r->activities[i];
        uint64_t id = a->id <= RECORDING_MAX ? a->id : 0;
        EXPECT(c, a->phase == KPT_PHASE_BEGIN || a->phase == KPT_PHASE_END,
               "activity %llu has no phase", (unsigned long long)a->id);
        EXPECT(c, i == 0 || moment(&r->activities[i - 1]) <= moment(a),
               "activity %llu is delivered after a later one", (unsigned long long)a->id);
        EXPECT(c, a->phase == KPT_PHASE_END || a->end_ns == a->start_ns,
               "the begin of activity %llu has an end time", (unsigned long long)a->id);
        open[id] += a->phase == KPT_PHASE_BEGIN ? 1 : -1;
        EXPECT(c, open[id] >= 0, "activity %llu ends before it begins", (unsigned long long)a->id);
    }
    for (uint32_t id = 1; id <= RECORDING_MAX; id++)
        EXPECT(c, open[id] == 0, "activity %u begins, but does not end", id);
    free(open);
}

static void start_order(conform *c)
{
    recording *r = taken(c, KPT_ORDER_START);
    for (uint32_t i = 0; i < r->activity_count; i++) {
        const kpt_activity *a = &r->activities[i];
        EXPECT(c, i == 0 || r->activities[i - 1].start_ns <= a->start_ns,
               "activity %llu is delivered after a later one", (unsigned long long)a->id);
        EXPECT(c, a->parent_id < a->id, "activity %llu is delivered before its parent",
               (unsigned long long)a->id);
        EXPECT(c, a->id == i + 1, "the id of activity %u is %llu", i + 1,
               (unsigned long long)a->id);
    }
}

static void same_in_all(conform *c)
{
    kpt_tracer t;
    recording *r;
    conform_record(c, &t);
    r = recording_take(c, &t, KPT_ORDER_THREAD);
    EXPECT(c, recording_same(r, recording_take(c, &t, KPT_ORDER_TIME)), "TIME differs from THREAD");
    EXPECT(c, recording_same(r, recording_take(c, &t, KPT_ORDER_START)),
           "START differs from THREAD");
}

static void known_values(conform *c)
{
    enum {
        ALL = KPT_ACTIVITY_BEGAN_BEFORE | KPT_ACTIVITY_ENDED_BY_STOP | KPT_ACTIVITY_CLAMPED |
              KPT_ACTIVITY_RECOVERED | KPT_ACTIVITY_WATCHED | KPT_ACTIVITY_MARKED |
              KPT_ACTIVITY_CONTINUED
    };
    recording *r = taken(c, KPT_ORDER_THREAD);
    for (uint32_t i = 0; i < r->activity_count; i++) {
        const kpt_activity *a = &r->activities[i];
        EXPECT(c,
               a->kind >= KPT_KIND_PYTHON && a->kind <= KPT_KIND_GC && a->phase <= KPT_PHASE_END &&
                   !(a->flags & ~(uint32_t)ALL),
               "activity %llu has kind %u, phase %u, flags %x", (unsigned long long)a->id, a->kind,
               a->phase, a->flags);
    }
}

static void depths(conform *c)
{
    recording *r = taken(c, KPT_ORDER_THREAD);
    const kpt_activity **found = by_id(r);
    for (uint32_t i = 0; i < r->activity_count; i++) {
        const kpt_activity *a = &r->activities[i];
        const kpt_activity *parent = parent_of(found, a);
        if (a->parent_id == 0 || parent)
            EXPECT(c, a->depth == (parent ? parent->depth + 1 : 0), "activity %llu has depth %u",
                   (unsigned long long)a->id, a->depth);
    }
    free(found);
}

const conform_rule conform_order_rules[] = {
    RULE(R509, "names and threads are delivered no later than their first use", names_first),
    RULE(R510, "ids are unique, from 1", unique_ids),
    RULE(R511, "a parent is 0 or an activity of the same thread", parents_exist),
    RULE(R512, "no activity ends before it starts, or after the delivery's end", times),
    RULE(R513, "activities of a thread nest strictly", nests),
    RULE(R514, "order THREAD: thread after thread, children first, ids in pre-order", thread_order),
    RULE(R515, "order TIME: by time, the begin and the end of each", time_order),
    RULE(R516, "order START: by start time, and so are the ids", start_order),
    RULE(R517, "the three orders deliver the same activities", same_in_all),
    RULE(R523, "kinds, phases and flags are known ones", known_values),
    RULE(R524, "depth is 0 for a root, otherwise the parent's depth plus 1", depths),
    RULE(R525, "calls that were open at stop end at the delivery's end_ns", ended_by_stop),
    {NULL, NULL, NULL},
};
