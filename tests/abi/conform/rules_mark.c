/* rules_mark.c: R531–R536: the host's marks, and deliveries of marked recordings. */
#include "tests/abi/conform/recording.h"

/* A stopped tracer with points of that number in the middle of its recording. */
static void record_points(conform *c, kpt_tracer *t, uint64_t number)
{
    char program[512];
    conform_make(c, t);
    conform_workload(c);
    (void)snprintf(program, sizeof program,
                   "import ctypes\n"
                   "def outer():\n"
                   "    mark = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64, ctypes.c_uint32, "
                   "ctypes.c_uint64)(%llu)\n"
                   "    assert mark(%llu, %d, %llu) == 0\n"
                   "outer()\n",
                   (unsigned long long)(uintptr_t)t->ops->mark, (unsigned long long)t->self,
                   KPT_MARK_POINT, (unsigned long long)number);
    conform_python(c, program);
    EXPECT_STATUS(c, KPT_OK, t->ops->mark(t->self, KPT_MARK_POINT, number));
    conform_workload(c);
    if (t->ops->stop(t->self) != KPT_OK) conform_unreached(c, "stop failed");
}

static void record_marked(conform *c, kpt_tracer *t)
{
    record_points(c, t, 0);
}

/* Makes a stopped tracer with a span that begins in one call, which continues, and ends in another. */
static void record_span(conform *c, kpt_tracer *t, uint64_t number)
{
    char program[640];
    conform_make(c, t);
    conform_workload(c);
    (void)snprintf(program, sizeof program,
                   "import ctypes\n"
                   "mark = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_uint64, ctypes.c_uint32, "
                   "ctypes.c_uint64)(%llu)\n"
                   "def tail(): pass\n"
                   "def begins():\n"
                   "    assert mark(%llu, %d, %llu) == 0\n"
                   "    tail()\n"
                   "def ends():\n"
                   "    assert mark(%llu, %d, %llu) == 0\n"
                   "    tail()\n"
                   "begins()\n"
                   "ends()\n",
                   (unsigned long long)(uintptr_t)t->ops->mark, (unsigned long long)t->self,
                   KPT_MARK_BEGIN, (unsigned long long)number, (unsigned long long)t->self,
                   KPT_MARK_END, (unsigned long long)number);
    conform_python(c, program);
    if (t->ops->stop(t->self) != KPT_OK) conform_unreached(c, "stop failed");
}

static void unknown_marks(conform *c)
{
    kpt_tracer t;
    conform_make(c, &t);
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->mark(t.self, 0, 0));
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->mark(t.self, KPT_MARK_END + 1, 0));
    EXPECT_STATUS(c, KPT_E_HANDLE, t.ops->mark(0, KPT_MARK_POINT, 0));
    EXPECT_STATUS(c, KPT_OK, t.ops->mark(t.self, KPT_MARK_END, 7)); /* this span never began */
}

static const kpt_activity *find(const recording *r, uint64_t id)
{
    for (uint32_t i = 0; i < r->activity_count; i++)
        if (r->activities[i].id == id) return &r->activities[i];
    return NULL;
}

/* How many of the activities are marked: some, or the rule is not reached. */
static uint32_t count_marked(conform *c, const recording *r)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->activity_count; i++)
        count += (r->activities[i].flags & KPT_ACTIVITY_MARKED) != 0;
    if (!count) conform_unreached(c, "no call was open at the mark");
    return count;
}

static void marked_calls(conform *c)
{
    kpt_tracer t;
    const recording *r;
    record_marked(c, &t);
    r = recording_take(c, &t, KPT_ORDER_THREAD);
    (void)count_marked(c, r);
    for (uint32_t i = 0; i < r->activity_count; i++) {
        const kpt_activity *a = &r->activities[i];
        const kpt_activity *parent = find(r, a->parent_id);
        EXPECT(c,
               !(a->flags & KPT_ACTIVITY_MARKED) || !parent || parent->flags & KPT_ACTIVITY_MARKED,
               "activity %llu is marked, and its parent is not", (unsigned long long)a->id);
    }
}

static void only_marked(conform *c, const kpt_tracer *t, uint32_t order)
{
    const recording *all = recording_take(c, t, order);
    uint32_t count = count_marked(c, all);
    kpt_delivery delivery;
    const recording *some;
    KPT_INIT(&delivery);
    delivery.order = order;
    delivery.flags = KPT_DELIVER_MARKED;
    some = recording_take_with(c, t, delivery);
    EXPECT(c, some->activity_count == count, "%u activities were delivered, but %u are marked",
           some->activity_count, count);
    for (uint32_t i = 0; i < some->activity_count; i++) {
        const kpt_activity *a = &some->activities[i];
        const kpt_activity *same = find(all, a->id);
        EXPECT(c, same && same->start_ns == a->start_ns && same->parent_id == a->parent_id,
               "activity %llu differs from the one in the full delivery",
               (unsigned long long)a->id);
    }
}

static kpt_status no_batch(void *ctx, const kpt_batch *batch)
{
    (void)ctx;
    (void)batch;
    return KPT_OK;
}

static void marked_part(conform *c)
{
    kpt_tracer t;
    kpt_delivery delivery;
    record_marked(c, &t);
    only_marked(c, &t, KPT_ORDER_THREAD);
    only_marked(c, &t, KPT_ORDER_START);
    KPT_INIT(&delivery);
    delivery.order = KPT_ORDER_TIME;
    delivery.flags = KPT_DELIVER_MARKED;
    delivery.sink = no_batch;
    EXPECT_STATUS(c, KPT_E_UNSUPPORTED, t.ops->get_events(t.self, &delivery));
}

enum { NUMBER = 77 };

/* Checks that each point lies in a marked call of its thread. Returns the number of points. */
static uint32_t check_points(conform *c, const recording *r)
{
    uint32_t inside = 0;
    for (uint32_t i = 0; i < r->activity_count; i++) {
        const kpt_activity *p = &r->activities[i];
        const kpt_activity *parent = NULL;
        if (p->kind != KPT_KIND_POINT) continue;
        EXPECT(c, p->value0 == NUMBER, "a point has the number %llu, not %d",
               (unsigned long long)p->value0, NUMBER);
        EXPECT(c, !p->id && p->phase == KPT_PHASE_COMPLETE, "a point is delivered as a call");
        for (uint32_t k = 0; p->parent_id && k < r->activity_count; k++)
            if (r->activities[k].id == p->parent_id && r->activities[k].phase != KPT_PHASE_BEGIN)
                parent = &r->activities[k];
        if (!parent) continue;
        EXPECT(c, parent->thread == p->thread, "a point and its parent are of different threads");
        EXPECT(c, parent->start_ns <= p->start_ns && p->end_ns <= parent->end_ns,
               "a point is outside its parent's time");
        EXPECT(c, parent->flags & KPT_ACTIVITY_MARKED, "a point's parent is not marked");
        inside++;
    }
    return inside;
}

/* Checks that only calls are numbered, and that every name was delivered. */
static void check_numbers(conform *c, const recording *r)
{
    uint64_t greatest = 0;
    uint64_t calls = 0;
    for (uint32_t i = 0; i < r->activity_count; i++) {
        const kpt_activity *a = &r->activities[i];
        int named = 0;
        if (a->id > greatest) greatest = a->id;
        calls += a->kind != KPT_KIND_POINT && a->phase != KPT_PHASE_BEGIN;
        for (uint32_t k = 0; k < r->name_count; k++)
            named |= r->names[k].index == a->name;
        EXPECT(c, named, "the name %u was never delivered", a->name);
    }
    EXPECT(c, greatest == calls, "%llu calls have ids up to %llu", (unsigned long long)calls,
           (unsigned long long)greatest);
}

static void points(conform *c)
{
    kpt_tracer t;
    conform_enter(c);
    if (c->info.abi_minor < 1) conform_unreached(c, "the plugin is of ABI 1.0");
    record_points(c, &t, NUMBER);
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_TIME; order++) {
        const recording *r;
        kpt_delivery delivery;
        KPT_INIT(&delivery);
        delivery.order = order;
        delivery.flags = KPT_DELIVER_POINTS;
        r = recording_take_with(c, &t, delivery);
        if (r->malformed) conform_unreached(c, "%s", r->malformed);
        EXPECT(c, check_points(c, r) > 0, "no point is inside a call");
        check_numbers(c, r);
    }
}

static void no_points_by_start(conform *c)
{
    kpt_tracer t;
    kpt_delivery delivery;
    conform_record(c, &t);
    if (c->info.abi_minor < 1) conform_unreached(c, "the plugin is of ABI 1.0");
    KPT_INIT(&delivery);
    delivery.order = KPT_ORDER_START;
    delivery.flags = KPT_DELIVER_POINTS;
    delivery.sink = no_batch;
    EXPECT_STATUS(c, KPT_E_UNSUPPORTED, t.ops->get_events(t.self, &delivery));
}

static const kpt_activity *part_before(const recording *r, uint32_t i)
{
    for (uint32_t k = r->activity_count; k-- > 0;) {
        const kpt_activity *a = &r->activities[k];
        if (k != i && a->id == r->activities[i].id && a->end_ns <= r->activities[i].start_ns)
            return a;
    }
    return NULL;
}

/* Parts of calls, in a recording with a span that begins in one call and ends in another. */
static void parts(conform *c)
{
    kpt_tracer t;
    kpt_delivery delivery;
    const recording *r;
    conform_enter(c);
    if (c->info.abi_minor < 2) conform_unreached(c, "the plugin is older than ABI 1.2");
    record_span(c, &t, NUMBER);
    r = recording_take(c, &t, KPT_ORDER_START);
    for (uint32_t i = 0; i < r->activity_count; i++)
        EXPECT(c, !(r->activities[i].flags & KPT_ACTIVITY_CONTINUED),
               "activity %llu continues, but no parts were requested",
               (unsigned long long)r->activities[i].id);
    KPT_INIT(&delivery);
    delivery.order = KPT_ORDER_START;
    delivery.flags = KPT_DELIVER_PARTS;
    r = recording_take_with(c, &t, delivery);
    for (uint32_t i = 0; i < r->activity_count; i++) {
        const kpt_activity *a = &r->activities[i];
        const kpt_activity *before = part_before(r, i);
        if (!(a->flags & KPT_ACTIVITY_CONTINUED)) continue;
        EXPECT(c, before && before->flags & KPT_ACTIVITY_CLAMPED,
               "activity %llu continues, but was not cut before", (unsigned long long)a->id);
        EXPECT(c, before && before->name == a->name && before->parent_id == a->parent_id,
               "activity %llu continues as another call", (unsigned long long)a->id);
    }
}

const conform_rule conform_mark_rules[] = {
    RULE(R531, "a mark of an unknown kind is KPT_E_INVALID", unknown_marks),
    RULE(R532, "calls that contain a marked one are marked", marked_calls),
    RULE(R533, "a delivery of marked calls is a subset of the full delivery, with the same ids",
         marked_part),
    RULE(R534, "points have their number, thread and parent, and use no ids", points),
    RULE(R535, "points in KPT_ORDER_START are KPT_E_UNSUPPORTED", no_points_by_start),
    RULE(R536, "parts of a call are delivered only on request, with its id, after a cut", parts),
    {NULL, NULL, NULL},
};
