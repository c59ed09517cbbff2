#include "tests/native/fuzz/delivering.h"

#include <stdlib.h>

#include "core/recording/clock.h"
#include "core/recording/delivery/deliver.h"
#include "tests/native/fuzz/replay_check.h"

enum { OPERATOR = 4 };

static int describe(void *ctx, uint32_t id, kpti_function_view *out)
{
    (void)ctx;
    memset(out, 0, sizeof *out);
    out->kind = id == OPERATOR ? KPT_KIND_OPERATOR : id % 2 ? KPT_KIND_PYTHON : KPT_KIND_C;
    out->first_line = id;
    return id != FUNCTIONS - 1;
}

static void fall(void *ctx, const uint64_t *ticks, int64_t *ns, uint64_t count)
{
    (void)ctx;
    for (uint64_t i = 0; i < count; i++)
        ns[i] = -(int64_t)(ticks[i] / 2);
}

static void coarse(void *ctx, const uint64_t *ticks, int64_t *ns, uint64_t count)
{
    (void)ctx;
    for (uint64_t i = 0; i < count; i++)
        ns[i] = (int64_t)(ticks[i] / 64);
}

wish take_wish(input *in)
{
    static const kpt_convert_fn converters[] = {NULL, coarse, fall, NULL};
    const uint64_t choice = take(in, 2);
    return (wish){.convert = converters[choice & 3],
                  .end_ns = (int64_t)take(in, 2) * (choice & 4 ? 1 : 0),
                  .min_duration_ns = choice & 16 ? choice >> 8 & 63 : 0,
                  .parts = (choice >> 5 & 1) != 0,
                  .texts = (choice >> 6 & 1) != 0,
                  .batch_size = choice & 8 ? 1 + (uint32_t)(choice >> 12) : 0};
}

static void deliver(deliver_fn fn, void *ctx, wish w, check *c)
{
    kpt_delivery delivery;
    KPT_INIT(&delivery);
    delivery.order = c->order;
    if (c->order != KPT_ORDER_START) delivery.flags = KPT_DELIVER_POINTS;
    if (w.parts) delivery.flags |= KPT_DELIVER_PARTS;
    if (w.texts) delivery.flags |= KPT_DELIVER_INPUTS | KPT_DELIVER_RANGES;
    delivery.convert = w.convert;
    delivery.end_ns = c->end_ns = w.end_ns;
    delivery.batch_size = c->batch_size = w.batch_size;
    delivery.sink = check_sink;
    delivery.sink_ctx = c;
    c->least_ns = w.min_duration_ns;
    c->parts = w.parts;
    c->texts = w.texts;
    if (fn(ctx, &delivery) != KPT_OK) abort();
    check_all(c);
}

void deliver_in_all_orders(deliver_fn fn, void *ctx, wish w, uint32_t names, uint32_t threads)
{
    check checks[KPT_ORDER_START + 1];
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
        check_init(&checks[order], order, names, threads);
        deliver(fn, ctx, w, &checks[order]);
    }
    check_same(&checks[KPT_ORDER_THREAD], &checks[KPT_ORDER_TIME]);
    check_same(&checks[KPT_ORDER_THREAD], &checks[KPT_ORDER_START]);
    check_same_points(&checks[KPT_ORDER_THREAD], &checks[KPT_ORDER_TIME]);
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++)
        check_free(&checks[order]);
}

static kpt_status deliver_recording(void *ctx, const kpt_delivery *delivery)
{
    const kpti_env env = {0};
    const kpti_clock_point ends[] = {{.ticks = 0, .hz = 121875000}, {.ticks = 1, .hz = 121875000}};
    kpti_clock clock;
    kpti_error error;
    kpti_delivery_job job = {.env = &env, .recording = ctx, .delivery = delivery};
    kpti_clock_between(&ends[0], &ends[1], &clock);
    job.own_convert = kpti_clock_convert;
    job.own_convert_ctx = &clock;
    return kpti_deliver(&job, &error);
}

void deliver_all(kpti_recording recording, wish w)
{
    static const kpti_cross_thread_end cross_thread_ends[] = {
        {9, 1, 0}, {40, 2, 0}, {40, 3, 0}, {300, 0, 0}, {5000, 1, 0}, {UINT64_C(1) << 40, 4, 0}};
    recording.cross_thread_ends = cross_thread_ends;
    recording.remote_end_count = sizeof cross_thread_ends / sizeof *cross_thread_ends;
    recording.function_count = FUNCTIONS;
    recording.describe = describe;
    recording.min_duration_ns = w.min_duration_ns;
    deliver_in_all_orders(deliver_recording, &recording, w, FUNCTIONS + 2, recording.track_count);
}

void free_chunks(const kpti_chunk *first)
{
    while (first) {
        const kpti_chunk *next = first->next;
        free((void *)first);
        first = next;
    }
}
