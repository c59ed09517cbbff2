/* rules_delivery.c: R306, R501–R508, R518–R522: requests for events: refusals, batches, sinks, conversion. */
#include <pthread.h>

#include "tests/abi/conform/recording.h"

typedef struct counting {
    uint32_t batches;
    kpt_status answer;
    pthread_t thread;
    int elsewhere; /* a call was made on another thread */
} counting;

static kpt_status count_batch(void *ctx, const kpt_batch *batch)
{
    counting *n = ctx;
    (void)batch;
    n->batches++;
    n->elsewhere |= !pthread_equal(n->thread, pthread_self());
    return n->answer;
}

static kpt_delivery counted(counting *n)
{
    kpt_delivery delivery;
    memset(n, 0, sizeof *n);
    n->thread = pthread_self();
    KPT_INIT(&delivery);
    delivery.sink = count_batch;
    delivery.sink_ctx = n;
    return delivery;
}

static void repeats(conform *c)
{
    kpt_tracer t;
    recording *first;
    conform_record(c, &t);
    first = recording_take(c, &t, KPT_ORDER_THREAD);
    EXPECT(c, recording_same(first, recording_take(c, &t, KPT_ORDER_THREAD)),
           "the second delivery differs from the first");
}

static void null_delivery(conform *c)
{
    kpt_tracer t;
    conform_record(c, &t);
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->get_events(t.self, NULL));
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->snapshot(t.self, NULL));
}

static void no_sink(conform *c)
{
    kpt_tracer t;
    kpt_delivery delivery;
    KPT_INIT(&delivery);
    conform_record(c, &t);
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->get_events(t.self, &delivery));
}

static void small_delivery(conform *c)
{
    static const uint32_t sizes[] = {0, sizeof(uint32_t), KPT_DELIVERY_V1_SIZE - 1};
    kpt_tracer t;
    counting n;
    kpt_delivery delivery = counted(&n);
    conform_record(c, &t);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        delivery.struct_size = sizes[i];
        EXPECT_STATUS(c, KPT_E_SIZE, t.ops->get_events(t.self, &delivery));
    }
}

static void sized_delivery(conform *c, uint32_t claimed, uint32_t bytes)
{
    kpt_tracer t;
    counting n;
    kpt_delivery delivery = counted(&n);
    conform_record(c, &t);
    EXPECT_STATUS(
        c, KPT_OK,
        t.ops->get_events(t.self, conform_sized(&delivery, sizeof delivery, claimed, bytes)));
}

static void exact_delivery(conform *c)
{
    sized_delivery(c, KPT_DELIVERY_V1_SIZE, KPT_DELIVERY_V1_SIZE);
}

static void large_delivery(conform *c)
{
    sized_delivery(c, sizeof(kpt_delivery) + 64, sizeof(kpt_delivery) + 64);
    sized_delivery(c, UINT32_MAX, sizeof(kpt_delivery) + 64);
}

static void unknown_order(conform *c)
{
    kpt_tracer t;
    counting n;
    kpt_delivery delivery = counted(&n);
    conform_record(c, &t);
    delivery.order = 99;
    EXPECT_STATUS(c, KPT_E_UNSUPPORTED, t.ops->get_events(t.self, &delivery));
    delivery.order = KPT_ORDER_THREAD;
    delivery.flags = 1U << 31;
    EXPECT_STATUS(c, KPT_E_UNSUPPORTED, t.ops->get_events(t.self, &delivery));
}

static void batch_size(conform *c)
{
    kpt_tracer t;
    conform_record(c, &t);
    for (uint32_t max = 1; max < 5; max++) {
        kpt_delivery delivery;
        recording *r;
        KPT_INIT(&delivery);
        delivery.batch_size = max;
        r = recording_take_with(c, &t, delivery);
        EXPECT(c, r->largest_batch <= max, "a batch holds %u activities instead of %u",
               r->largest_batch, max);
    }
}

static void well_formed(conform *c)
{
    kpt_tracer t;
    conform_record(c, &t);
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
        recording *r = recording_take(c, &t, order);
        EXPECT(c, !r->malformed, "%s", r->malformed);
    }
}

static void cancels(conform *c)
{
    kpt_tracer t;
    counting n;
    kpt_delivery delivery = counted(&n);
    conform_record(c, &t);
    (void)recording_take(c, &t, KPT_ORDER_THREAD); /* not reached without events */
    delivery.batch_size = 1;
    n.answer = 1234;
    EXPECT_STATUS(c, 1234, t.ops->get_events(t.self, &delivery));
    EXPECT(c, n.batches == 1, "the sink was called %u times after it had ended the delivery",
           n.batches - 1);
}

/* Converts as the identity, and checks its arguments. */
typedef struct converting {
    pthread_t thread;
    int elsewhere;
    int backwards;
    uint64_t calls;
} converting;

enum { SHIFT_NS = 1000000007 }; /* so that converted times can't be mistaken for ticks */

static void convert_shifted(void *ctx, const uint64_t *ticks, int64_t *ns, uint64_t count)
{
    converting *v = ctx;
    v->calls++;
    v->elsewhere |= !pthread_equal(v->thread, pthread_self());
    for (uint64_t i = 0; i < count; i++) {
        v->backwards |= i > 0 && ticks[i] < ticks[i - 1];
        ns[i] = (int64_t)ticks[i] + SHIFT_NS;
    }
}

static void convert_plain(void *ctx, const uint64_t *ticks, int64_t *ns, uint64_t count)
{
    (void)ctx;
    for (uint64_t i = 0; i < count; i++)
        ns[i] = (int64_t)ticks[i];
}

static void same_thread(conform *c)
{
    kpt_tracer t;
    counting n;
    converting v = {pthread_self(), 0, 0, 0};
    kpt_delivery delivery = counted(&n);
    conform_record(c, &t);
    delivery.convert = convert_shifted;
    delivery.convert_ctx = &v;
    if (t.ops->get_events(t.self, &delivery) != KPT_OK) conform_unreached(c, "get_events failed");
    if (n.batches == 0) conform_unreached(c, "no activity was delivered");
    EXPECT(c, !n.elsewhere, "the sink was called on another thread");
    EXPECT(c, !v.elsewhere, "convert was called on another thread");
}

static void converts(conform *c)
{
    kpt_tracer t;
    converting v = {pthread_self(), 0, 0, 0};
    kpt_delivery delivery;
    recording *plain;
    recording *shifted;
    conform_record(c, &t);
    KPT_INIT(&delivery);
    delivery.convert = convert_plain;
    plain = recording_take_with(c, &t, delivery);
    delivery.convert = convert_shifted;
    delivery.convert_ctx = &v;
    shifted = recording_take_with(c, &t, delivery);
    EXPECT(c, v.calls > 0, "convert was not called");
    EXPECT(c, !v.backwards, "convert received ticks that go backwards");
    EXPECT(c, plain->activity_count == shifted->activity_count, "the number of activities differs");
    for (uint32_t i = 0; i < plain->activity_count; i++) {
        const kpt_activity *a = &plain->activities[i];
        const kpt_activity *b = &shifted->activities[i];
        EXPECT(c, b->start_ns - a->start_ns == SHIFT_NS && b->end_ns - a->end_ns == SHIFT_NS,
               "activity %llu has a time that convert did not return", (unsigned long long)a->id);
    }
}

static char *copy_text(kpt_str text)
{
    char *copy = calloc(1, text.size + 1);
    if (!copy) abort();
    if (text.size) memcpy(copy, text.data, text.size);
    return copy;
}

static kpt_status take_strings(void *ctx, const kpt_batch *batch)
{
    kpt_str *kept = ctx; /* the string itself, and our copy of it */
    if (!kept[0].data && batch->name_count) {
        kept[0] = batch->names->display;
        kept[1] = (kpt_str){copy_text(kept[0]), kept[0].size};
    }
    return KPT_OK;
}

static void strings_live(conform *c)
{
    kpt_tracer t;
    kpt_str kept[2] = {{NULL, 0}, {NULL, 0}};
    kpt_delivery delivery;
    KPT_INIT(&delivery);
    delivery.sink = take_strings;
    delivery.sink_ctx = kept;
    conform_record(c, &t);
    if (t.ops->get_events(t.self, &delivery) != KPT_OK || !kept[0].data)
        conform_unreached(c, "no name was delivered");
    (void)recording_take(c, &t, KPT_ORDER_TIME);
    EXPECT(c, memcmp(kept[0].data, kept[1].data, kept[0].size) == 0,
           "a name changed after the delivery: it was \"%s\" before", kept[1].data);
}

typedef struct calling_back {
    const kpt_tracer *tracer;
    kpt_status statuses[3];
    uint32_t batches;
} calling_back;

static kpt_status call_back(void *ctx, const kpt_batch *batch)
{
    calling_back *b = ctx;
    kpt_stats stats;
    (void)batch;
    KPT_INIT(&stats);
    b->batches++;
    b->statuses[0] = b->tracer->ops->get_stats(b->tracer->self, &stats);
    b->statuses[1] = b->tracer->ops->restart(b->tracer->self);
    b->statuses[2] = b->tracer->ops->destroy(b->tracer->self);
    return KPT_OK;
}

static void busy_inside(conform *c)
{
    kpt_tracer t;
    calling_back b = {&t, {0}, 0};
    kpt_delivery delivery;
    KPT_INIT(&delivery);
    delivery.sink = call_back;
    delivery.sink_ctx = &b;
    conform_record(c, &t);
    if (t.ops->get_events(t.self, &delivery) != KPT_OK) conform_unreached(c, "get_events failed");
    if (!b.batches) conform_unreached(c, "no activity was delivered");
    conform_expect_status(c, KPT_E_BUSY, b.statuses[0], "get_stats from the sink");
    conform_expect_status(c, KPT_E_BUSY, b.statuses[1], "restart from the sink");
    conform_expect_status(c, KPT_E_BUSY, b.statuses[2], "destroy from the sink");
}

const conform_rule conform_delivery_rules[] = {
    RULE(R306, "get_events can be repeated and delivers the same", repeats),
    RULE(R501, "a NULL delivery is KPT_E_INVALID", null_delivery),
    RULE(R502, "a delivery without a sink is KPT_E_INVALID", no_sink),
    RULE(R503, "a delivery below the V1 size is KPT_E_SIZE", small_delivery),
    RULE(R504, "a delivery is not read past its struct_size", exact_delivery),
    RULE(R505, "a delivery larger than the plugin's is accepted", large_delivery),
    RULE(R506, "an unknown order or flag is KPT_E_UNSUPPORTED", unknown_order),
    RULE(R507, "a batch holds at most batch_size activities", batch_size),
    RULE(R508, "batches are well formed and in the requested order", well_formed),
    RULE(R518, "a status other than KPT_OK from the sink ends the delivery, which returns it",
         cancels),
    RULE(R519, "sink and convert run on the calling thread", same_thread),
    RULE(R520, "times are results of convert, which receives ticks that never go backwards",
         converts),
    RULE(R521, "strings live until the tracer is destroyed", strings_live),
    RULE(R522, "control calls from inside the sink are KPT_E_BUSY", busy_inside),
    {NULL, NULL, NULL},
};
