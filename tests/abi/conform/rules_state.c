/* rules_state.c: R3xx, R4xx, R6xx, R70x: states and handles, texts, counters, extensions. */
#include <pthread.h>

#include "tests/abi/conform/conform.h"

/* A sink for rules that do not check the delivery. */
static kpt_status ignore_batch(void *ctx, const kpt_batch *batch)
{
    (void)ctx;
    (void)batch;
    return KPT_OK;
}

static kpt_delivery ignoring(void)
{
    kpt_delivery delivery;
    KPT_INIT(&delivery);
    delivery.sink = ignore_batch;
    return delivery;
}

static void stops(conform *c)
{
    kpt_tracer t;
    conform_make(c, &t);
    EXPECT_STATUS(c, KPT_OK, t.ops->stop(t.self));
}

static void stops_twice(conform *c)
{
    kpt_tracer t;
    conform_record(c, &t);
    EXPECT_STATUS(c, KPT_E_STATE, t.ops->stop(t.self));
}

static void restarts_running(conform *c)
{
    kpt_tracer t;
    conform_make(c, &t);
    EXPECT_STATUS(c, KPT_E_STATE, t.ops->restart(t.self));
}

static uint32_t state_of(conform *c, const kpt_tracer *t)
{
    kpt_stats stats;
    KPT_INIT(&stats);
    if (t->ops->get_stats(t->self, &stats) != KPT_OK) conform_unreached(c, "get_stats failed");
    return stats.state;
}

static void restarts(conform *c)
{
    kpt_tracer t;
    conform_record(c, &t);
    EXPECT_STATUS(c, KPT_OK, t.ops->restart(t.self));
    EXPECT_STATUS(c, KPT_E_STATE, t.ops->restart(t.self));
    EXPECT_STATUS(c, KPT_OK, t.ops->stop(t.self));
}

static void events_running(conform *c)
{
    kpt_tracer t;
    kpt_delivery delivery = ignoring();
    conform_make(c, &t);
    EXPECT_STATUS(c, KPT_E_STATE, t.ops->get_events(t.self, &delivery));
}

static void gc_callback(conform *c)
{
    kpt_tracer t;
    conform_make(c, &t);
    EXPECT_STATUS(c, KPT_OK, t.ops->register_gc_callback(t.self));
    EXPECT_STATUS(c, KPT_OK, t.ops->register_gc_callback(t.self));
    if (t.ops->stop(t.self) != KPT_OK) conform_unreached(c, "stop failed");
    EXPECT_STATUS(c, KPT_OK, t.ops->register_gc_callback(t.self));
}

static void snapshot_running(conform *c)
{
    kpt_tracer t;
    kpt_delivery delivery = ignoring();
    conform_make(c, &t);
    conform_workload(c);
    EXPECT_STATUS(c, KPT_OK, t.ops->snapshot(t.self, &delivery));
    if (t.ops->stop(t.self) != KPT_OK) conform_unreached(c, "stop failed");
    EXPECT_STATUS(c, KPT_OK, t.ops->snapshot(t.self, &delivery));
}

static void stats_state(conform *c)
{
    kpt_tracer t;
    conform_make(c, &t);
    EXPECT(c, state_of(c, &t) == KPT_STATE_RUNNING, "get_stats does not report KPT_STATE_RUNNING");
    if (t.ops->stop(t.self) != KPT_OK) conform_unreached(c, "stop failed");
    EXPECT(c, state_of(c, &t) == KPT_STATE_STOPPED, "get_stats does not report KPT_STATE_STOPPED");
}

static void destroys_running(conform *c)
{
    kpt_tracer t;
    conform_make(c, &t);
    EXPECT_STATUS(c, KPT_OK, t.ops->destroy(t.self));
}

/* Calls every function except last_error with a dead handle. */
static void expect_dead(conform *c, const kpt_tracer_ops *ops, kpt_handle self)
{
    kpt_delivery delivery = ignoring();
    kpt_stats stats;
    kpt_memory_tracer memory;
    KPT_INIT(&stats);
    KPT_INIT(&memory);
    EXPECT_STATUS(c, KPT_E_HANDLE, ops->stop(self));
    EXPECT_STATUS(c, KPT_E_HANDLE, ops->restart(self));
    EXPECT_STATUS(c, KPT_E_HANDLE, ops->register_gc_callback(self));
    EXPECT_STATUS(c, KPT_E_HANDLE, ops->get_events(self, &delivery));
    EXPECT_STATUS(c, KPT_E_HANDLE, ops->snapshot(self, &delivery));
    EXPECT_STATUS(c, KPT_E_HANDLE, ops->get_stats(self, &stats));
    EXPECT_STATUS(c, KPT_E_HANDLE, ops->get_extension(self, kpt_str_of(KPT_EXT_MEMORY), &memory));
    EXPECT_STATUS(c, KPT_E_HANDLE, ops->destroy(self));
}

static void dead_handle(conform *c)
{
    kpt_tracer t;
    conform_record(c, &t);
    if (t.ops->destroy(t.self) != KPT_OK) conform_unreached(c, "destroy failed");
    expect_dead(c, t.ops, t.self);
}

static void made_up_handle(conform *c)
{
    kpt_tracer t;
    conform_make(c, &t);
    expect_dead(c, t.ops, 0);
    expect_dead(c, t.ops, UINT64_MAX);
    expect_dead(c, t.ops, t.self + (UINT64_C(1) << 40));
}

static void handles_differ(conform *c)
{
    kpt_tracer first;
    conform_make(c, &first);
    if (first.ops->destroy(first.self) != KPT_OK) conform_unreached(c, "destroy failed");
    for (int i = 0; i < 100; i++) {
        kpt_tracer next;
        conform_make(c, &next);
        EXPECT(c, next.self != first.self, "a destroyed tracer's handle was reused");
        (void)next.ops->destroy(next.self);
    }
}

static void destroy_frees(conform *c)
{
    kpt_tracer t;
    uint64_t before;
    conform_enter(c);
    before = c->host.live_blocks;
    conform_record(c, &t);
    if (t.ops->destroy(t.self) != KPT_OK) conform_unreached(c, "destroy failed");
    EXPECT(c, c->host.live_blocks == before, "%llu blocks were not freed",
           (unsigned long long)(c->host.live_blocks - before));
    EXPECT(c, c->host.bad_frees == 0, "memory was freed with a wrong size");
}

typedef struct elsewhere {
    kpt_tracer tracer;
    kpt_status stop;
    kpt_status get_events;
    kpt_status destroy;
} elsewhere;

static void *control_elsewhere(void *ctx)
{
    elsewhere *e = ctx;
    kpt_delivery delivery = ignoring();
    e->stop = e->tracer.ops->stop(e->tracer.self);
    e->get_events = e->tracer.ops->get_events(e->tracer.self, &delivery);
    e->destroy = e->tracer.ops->destroy(e->tracer.self);
    return NULL;
}

static void other_thread(conform *c)
{
    elsewhere e;
    pthread_t thread;
    conform_record(c, &e.tracer); /* the rule is not reached if stop fails on the same thread */
    conform_make(c, &e.tracer);
    if (pthread_create(&thread, NULL, control_elsewhere, &e) != 0)
        conform_unreached(c, "no thread could be started");
    (void)pthread_join(thread, NULL);
    conform_expect_status(c, KPT_OK, e.stop, "stop on another thread");
    conform_expect_status(c, KPT_OK, e.get_events, "get_events on another thread");
    conform_expect_status(c, KPT_OK, e.destroy, "destroy on another thread");
}

static void other_kind(conform *c)
{
    kpt_tracer t;
    kpt_memory_tracer memory;
    conform_make(c, &t);
    conform_make_memory(c, &memory);
    expect_dead(c, t.ops, memory.self);
    expect_dead(c, t.ops, c->info.self);
    EXPECT_STATUS(c, KPT_E_HANDLE, memory.ops->start(t.self));
}

/* A tracer whose last call failed: restart while it runs. */
static void make_failing(conform *c, kpt_tracer *t)
{
    conform_make(c, t);
    if (t->ops->restart(t->self) == KPT_OK) conform_unreached(c, "the call did not fail");
}

static void error_text(conform *c)
{
    kpt_tracer t;
    char text[256];
    uint64_t needed = 0;
    memset(text, 0xA5, sizeof text);
    make_failing(c, &t);
    EXPECT_STATUS(c, KPT_OK, t.ops->last_error(t.self, text, sizeof text, &needed));
    EXPECT(c, memchr(text, 0, sizeof text), "the text has no NUL");
    EXPECT(c, text[0], "the text is empty");
}

static void error_bounds(conform *c)
{
    kpt_tracer t;
    make_failing(c, &t);
    for (uint64_t size = 1; size < 12; size++) {
        char *text = mock_guarded(64);
        memset(text, 0xA5, 64);
        EXPECT_STATUS(c, KPT_OK, t.ops->last_error(t.self, text, size, NULL));
        EXPECT(c, memchr(text, 0, size), "a text cut to %llu bytes has no NUL",
               (unsigned long long)size);
        EXPECT(c, conform_filled(text + size, 0xA5, 64 - size), "it wrote more than %llu bytes",
               (unsigned long long)size);
    }
}

static void error_length(conform *c)
{
    kpt_tracer t;
    char text[1024];
    uint64_t needed = UINT64_MAX;
    make_failing(c, &t);
    EXPECT_STATUS(c, KPT_OK, t.ops->last_error(t.self, NULL, 0, &needed));
    if (t.ops->last_error(t.self, text, sizeof text, NULL) != KPT_OK)
        conform_unreached(c, "last_error failed");
    EXPECT(c, needed == strlen(text), "it needs %llu bytes, but reports %llu",
           (unsigned long long)strlen(text), (unsigned long long)needed);
}

static void error_null(conform *c)
{
    kpt_tracer t;
    make_failing(c, &t);
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->last_error(t.self, NULL, 16, NULL));
}

static void error_dead(conform *c)
{
    kpt_tracer t;
    char text[256] = "";
    conform_make(c, &t);
    if (t.ops->destroy(t.self) != KPT_OK) conform_unreached(c, "destroy failed");
    EXPECT_STATUS(c, KPT_OK, t.ops->last_error(t.self, text, sizeof text, NULL));
    EXPECT(c, text[0], "the text is empty");
}

/* FLAGS are the flags of the object whose last_error is called. */
static void expect_why(conform *c, uint32_t flags, kpt_last_error_fn last_error, kpt_handle self)
{
    char text[256] = "";
    if (!(flags & KPT_OBJECT_NOOP)) return;
    EXPECT_STATUS(c, KPT_OK, last_error(self, text, sizeof text, NULL));
    EXPECT(c, text[0], "the object is a no-op, but its last_error is empty");
}

static void noop_says_why(conform *c)
{
    kpt_tracer t;
    kpt_memory_tracer m;
    kpt_observer o;
    conform_make(c, &t);
    expect_why(c, t.flags, t.ops->last_error, t.self);
    if (!c->host.make_memory || !c->host.make_observer) return;
    conform_make_memory(c, &m);
    expect_why(c, m.flags, m.ops->last_error, m.self);
    conform_make_observer(c, &o);
    expect_why(c, o.flags, o.ops->last_error, o.self);
}

static void bad_stats(conform *c)
{
    static const uint32_t sizes[] = {0, sizeof(uint32_t), KPT_STATS_V1_SIZE - 1};
    kpt_tracer t;
    conform_make(c, &t);
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->get_stats(t.self, NULL));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        kpt_stats stats;
        memset(&stats, 0xA5, sizeof stats);
        stats.struct_size = sizes[i];
        EXPECT_STATUS(c, KPT_E_SIZE, t.ops->get_stats(t.self, &stats));
        EXPECT(c, conform_filled(&stats.state, 0xA5, sizeof stats - sizeof(uint32_t)),
               "it wrote into a struct of %u bytes", sizes[i]);
    }
}

static void stats_bounds(conform *c)
{
    enum { TAIL = 64 };
    kpt_tracer t;
    kpt_stats blank;
    kpt_stats *stats;
    conform_make(c, &t);
    KPT_INIT(&blank);
    stats = conform_sized(&blank, KPT_STATS_V1_SIZE, KPT_STATS_V1_SIZE, KPT_STATS_V1_SIZE + TAIL);
    EXPECT_STATUS(c, KPT_OK, t.ops->get_stats(t.self, stats));
    EXPECT(c, conform_filled((char *)stats + KPT_STATS_V1_SIZE, 0xA5, TAIL),
           "it wrote past the end of the struct");
    stats = conform_sized(&blank, sizeof blank, KPT_STATS_V1_SIZE, KPT_STATS_V1_SIZE);
    EXPECT_STATUS(c, KPT_OK, t.ops->get_stats(t.self, stats)); /* a step further would crash */
}

static void unknown_extension(conform *c)
{
    kpt_tracer t;
    kpt_memory_tracer out;
    conform_make(c, &t);
    KPT_INIT(&out);
    EXPECT_STATUS(c, KPT_E_UNSUPPORTED,
                  t.ops->get_extension(t.self, kpt_str_of("no.such.thing"), &out));
    EXPECT_STATUS(c, KPT_E_UNSUPPORTED,
                  c->info.get_extension(c->info.self, kpt_str_of("no.such.thing"), &out));
}

static void bad_extension(conform *c)
{
    const kpt_str nothing = {NULL, 5};
    kpt_tracer t;
    kpt_memory_tracer out;
    conform_make(c, &t);
    KPT_INIT(&out);
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->get_extension(t.self, nothing, &out));
    EXPECT_STATUS(c, KPT_E_INVALID, c->info.get_extension(c->info.self, nothing, &out));
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->get_extension(t.self, kpt_str_of(KPT_EXT_MEMORY), NULL));
}

const conform_rule conform_state_rules[] = {
    RULE(R301, "stop of a running tracer is KPT_OK", stops),
    RULE(R302, "a second stop is KPT_E_STATE", stops_twice),
    RULE(R303, "restart while running is KPT_E_STATE", restarts_running),
    RULE(R304, "restart after stop starts a new run", restarts),
    RULE(R305, "get_events while running is KPT_E_STATE", events_running),
    RULE(R307, "register_gc_callback can be repeated, and is legal in both states", gc_callback),
    RULE(R308, "snapshot is legal while running and after stop", snapshot_running),
    RULE(R309, "get_stats reports the state", stats_state),
    RULE(R310, "destroy while running is KPT_OK", destroys_running),
    RULE(R311, "every call on a destroyed tracer is KPT_E_HANDLE", dead_handle),
    RULE(R312, "every call on a made-up handle is KPT_E_HANDLE", made_up_handle),
    RULE(R313, "no handle is used twice", handles_differ),
    RULE(R314, "destroy frees the tracer's memory", destroy_frees),
    RULE(R315, "control calls are legal on any thread", other_thread),
    RULE(R316, "a handle of another kind of object is KPT_E_HANDLE", other_kind),
    RULE(R401, "an error sets the text of last_error", error_text),
    RULE(R402, "last_error writes at most size bytes, including the NUL", error_bounds),
    RULE(R403, "last_error reports the needed size", error_length),
    RULE(R404, "last_error with a size, but no buffer, is KPT_E_INVALID", error_null),
    RULE(R405, "last_error of a dead handle has a text", error_dead),
    RULE(R406, "a no-op's last_error has the reason", noop_says_why),
    RULE(R601, "stats that are NULL or below the V1 size are refused, and not written to",
         bad_stats),
    RULE(R602, "stats are not written past their struct_size", stats_bounds),
    RULE(R701, "an unknown extension is KPT_E_UNSUPPORTED", unknown_extension),
    RULE(R702, "an extension without a name or an out is KPT_E_INVALID", bad_extension),
    {NULL, NULL, NULL},
};
