/* rules_gpu.c: R76x: GPU tracers, an extension (since 1.1). The rules also hold for a no-op. */
#include "tests/abi/conform/conform.h"

static kpt_gpu_maker open_maker(conform *c)
{
    kpt_gpu_maker maker;
    conform_enter(c);
    KPT_INIT(&maker);
    if (c->info.get_extension(c->info.self, kpt_str_of(KPT_EXT_GPU), &maker) != KPT_OK)
        conform_unreached(c, "the plugin has no GPU tracers");
    return maker;
}

static void make(conform *c, kpt_gpu_tracer *out)
{
    const kpt_gpu_maker maker = open_maker(c);
    kpt_gpu_args args;
    kpt_status status;
    KPT_INIT(&args);
    KPT_INIT(out);
    status = maker.make(c->info.self, &args, out);
    if (status != KPT_OK) conform_unreached(c, "make returned %s", kpt_status_name(status));
}

static void begin(conform *c, kpt_gpu_tracer *out)
{
    kpt_status status;
    make(c, out);
    status = out->ops->start(out->self);
    if (status != KPT_OK) conform_unreached(c, "start returned %s", kpt_status_name(status));
}

static void has_functions(conform *c)
{
    kpt_gpu_tracer t;
    make(c, &t);
    EXPECT(c, t.self && t.ops && t.ops->struct_size >= KPT_GPU_OPS_V1_SIZE,
           "the handle is 0, or the struct_size of ops is below %u", KPT_GPU_OPS_V1_SIZE);
    EXPECT(c,
           t.ops->start && t.ops->stop && t.ops->collect && t.ops->get_stats && t.ops->last_error &&
               t.ops->destroy,
           "a function is missing");
}

static void unknown_flags(conform *c)
{
    const kpt_gpu_maker maker = open_maker(c);
    kpt_gpu_args args;
    kpt_gpu_tracer t;
    KPT_INIT(&args);
    KPT_INIT(&t);
    args.flags = UINT32_C(1) << 31;
    EXPECT_STATUS(c, KPT_E_UNSUPPORTED, maker.make(c->info.self, &args, &t));
    args.flags = 0;
    args.spare = 1;
    EXPECT_STATUS(c, KPT_E_UNSUPPORTED, maker.make(c->info.self, &args, &t));
}

static void states(conform *c)
{
    kpt_gpu_tracer t;
    make(c, &t);
    EXPECT_STATUS(c, KPT_E_STATE, t.ops->stop(t.self));
    if (t.ops->start(t.self) != KPT_OK) conform_unreached(c, "start failed");
    EXPECT_STATUS(c, KPT_E_STATE, t.ops->start(t.self));
    EXPECT_STATUS(c, KPT_OK, t.ops->stop(t.self));
    EXPECT_STATUS(c, KPT_E_STATE, t.ops->stop(t.self));
    EXPECT_STATUS(c, KPT_E_STATE, t.ops->start(t.self));
}

/* What the sink has received, and what it does next. */
typedef struct watch {
    const kpt_gpu_tracer *tracer;
    kpt_status answer;
    uint32_t calls;
    int small;            /* a stride was */
    uint64_t expensive;   /* events that KPT_GPU_FEWER_CALLS leaves out */
    kpt_status from_stop; /* called inside */
} watch;

static kpt_status look(void *ctx, const kpt_gpu_batch *batch)
{
    watch *w = ctx;
    w->calls++;
    w->small |=
        batch->struct_size < KPT_GPU_BATCH_V1_SIZE || batch->event_stride < KPT_GPU_EVENT_V1_SIZE ||
        batch->device_stride < KPT_GPU_DEVICE_V1_SIZE || batch->name_stride < KPT_GPU_NAME_V1_SIZE;
    for (uint64_t i = 0; !w->small && i < batch->event_count; i++) {
        const kpt_gpu_event *event =
            (const void *)((const char *)batch->events + i * batch->event_stride);
        w->expensive +=
            event->kind == KPT_GPU_SYNC || event->kind == KPT_GPU_OVERHEAD || event->external;
    }
    if (w->tracer) w->from_stop = w->tracer->ops->stop(w->tracer->self);
    return w->answer;
}

static void collects(conform *c)
{
    kpt_gpu_tracer t;
    watch w = {.answer = KPT_OK};
    begin(c, &t);
    EXPECT_STATUS(c, KPT_OK, t.ops->collect(t.self, look, &w));
    (void)t.ops->stop(t.self);
    EXPECT_STATUS(c, KPT_OK, t.ops->collect(t.self, look, &w));
    EXPECT(c, w.calls >= 2, "the sink was not called");
    EXPECT(c, !w.small, "a batch, or a stride in it, is below its V1 size");
}

static void inside(conform *c)
{
    kpt_gpu_tracer t;
    watch w = {.tracer = &t, .answer = KPT_OK};
    begin(c, &t);
    if (t.ops->collect(t.self, look, &w) != KPT_OK || !w.calls)
        conform_unreached(c, "collect failed");
    EXPECT(c, w.from_stop == KPT_E_BUSY, "stop inside the sink returned %s",
           kpt_status_name(w.from_stop));
}

static void answers(conform *c)
{
    kpt_gpu_tracer t;
    watch w = {.answer = KPT_E_LIMIT};
    begin(c, &t);
    (void)t.ops->stop(t.self);
    EXPECT_STATUS(c, KPT_E_LIMIT, t.ops->collect(t.self, look, &w));
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->collect(t.self, NULL, NULL));
}

static void dead(conform *c)
{
    kpt_gpu_tracer t;
    kpt_gpu_stats stats;
    watch w = {.answer = KPT_OK};
    begin(c, &t);
    EXPECT_STATUS(c, KPT_OK, t.ops->destroy(t.self)); /* ends recording */
    KPT_INIT(&stats);
    EXPECT_STATUS(c, KPT_E_HANDLE, t.ops->start(t.self));
    EXPECT_STATUS(c, KPT_E_HANDLE, t.ops->stop(t.self));
    EXPECT_STATUS(c, KPT_E_HANDLE, t.ops->collect(t.self, look, &w));
    EXPECT_STATUS(c, KPT_E_HANDLE, t.ops->get_stats(t.self, &stats));
    EXPECT_STATUS(c, KPT_E_HANDLE, t.ops->destroy(t.self));
}

static uint32_t state_of(conform *c, const kpt_gpu_tracer *t)
{
    kpt_gpu_stats stats;
    KPT_INIT(&stats);
    EXPECT_STATUS(c, KPT_OK, t->ops->get_stats(t->self, &stats));
    return stats.state;
}

static void counts(conform *c)
{
    kpt_gpu_tracer t;
    kpt_gpu_stats stats;
    uint32_t state;
    make(c, &t);
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->get_stats(t.self, NULL));
    KPT_INIT(&stats);
    stats.struct_size = KPT_GPU_STATS_V1_SIZE - 1;
    EXPECT_STATUS(c, KPT_E_SIZE, t.ops->get_stats(t.self, &stats));
    EXPECT(c, state_of(c, &t) == 0, "its state is not 0 before start");
    if (t.ops->start(t.self) != KPT_OK) conform_unreached(c, "start failed");
    state = state_of(c, &t);
    EXPECT(c, state == KPT_GPU_WAITING || state == KPT_GPU_RECORDING, "its state is %u after start",
           state);
    (void)t.ops->stop(t.self);
    EXPECT(c, state_of(c, &t) == KPT_GPU_STOPPED, "its state is not KPT_GPU_STOPPED after stop");
}

static void small_tracebacks(conform *c)
{
    const kpt_gpu_maker maker = open_maker(c);
    kpt_tracebacks none;
    kpt_gpu_args args;
    kpt_gpu_tracer t;
    KPT_INIT(&args);
    KPT_INIT(&t);
    KPT_INIT(&none);
    none.struct_size = KPT_TRACEBACKS_V1_SIZE - 1;
    args.tracebacks = &none;
    EXPECT_STATUS(c, KPT_E_SIZE, maker.make(c->info.self, &args, &t));
}

static void fewer_calls(conform *c)
{
    const kpt_gpu_maker maker = open_maker(c);
    watch w = {.answer = KPT_OK};
    kpt_gpu_args args;
    kpt_gpu_tracer t;
    kpt_status status;
    KPT_INIT(&args);
    KPT_INIT(&t);
    args.flags = KPT_GPU_FEWER_CALLS;
    status = maker.make(c->info.self, &args, &t);
    if (status == KPT_E_UNSUPPORTED) conform_unreached(c, "the plugin is older than 1.2");
    EXPECT_STATUS(c, KPT_OK, status);
    status = t.ops->start(t.self);
    if (status != KPT_OK) conform_unreached(c, "start returned %s", kpt_status_name(status));
    (void)t.ops->stop(t.self);
    EXPECT_STATUS(c, KPT_OK, t.ops->collect(t.self, look, &w));
    EXPECT(c, !w.expensive, "there are waits, overheads or external correlations");
}

const conform_rule conform_gpu_rules[] = {
    RULE(R761, "a GPU tracer has a handle and all functions", has_functions),
    RULE(R762, "unknown flags in its args, and values in spare fields, are refused", unknown_flags),
    RULE(R763, "a GPU tracer can be started once and stopped once", states),
    RULE(R764, "collect calls the sink at least once, with strides of at least the V1 size",
         collects),
    RULE(R765, "a call on the GPU tracer from inside its sink is KPT_E_BUSY", inside),
    RULE(R766, "collect returns the sink's status; a NULL sink is refused", answers),
    RULE(R767, "destroy while recording ends the recording and invalidates the handle", dead),
    RULE(R768, "get_stats checks struct_size and reports the state", counts),
    RULE(R769, "tracebacks below their V1 size are refused", small_tracebacks),
    RULE(R770, "with KPT_GPU_FEWER_CALLS there are no waits, overheads and external correlations",
         fewer_calls),
    {NULL, NULL, NULL}};
