/* scenario_report.c: all calls of a host: one object of each kind is made, used and destroyed. The report
 * prints the results; the silent scenario prints nothing, so that all output is the plugin's. */
#include <stdio.h>

#include "tests/abi/loading/helper.h"

static kpt_status count_activities(void *ctx, const kpt_batch *batch)
{
    *(uint64_t *)ctx += batch->activity_count;
    return KPT_OK;
}

static uint64_t live_through(kpt_tracer tracer)
{
    uint64_t activities = 0;
    kpt_delivery delivery;
    KPT_INIT(&delivery);
    delivery.sink = count_activities;
    delivery.sink_ctx = &activities;
    CHECK(tracer.ops->register_gc_callback(tracer.self) == KPT_OK, "register_gc_callback");
    CHECK(tracer.ops->stop(tracer.self) == KPT_OK, "stop");
    CHECK(tracer.ops->restart(tracer.self) == KPT_OK, "restart");
    CHECK(tracer.ops->stop(tracer.self) == KPT_OK, "the second stop");
    CHECK(tracer.ops->get_events(tracer.self, &delivery) == KPT_OK, "get_events");
    return activities;
}

static void gather(kpt_tracebacks tracebacks, int loud)
{
    kpt_traceback one;
    if (loud)
        printf("tracebacks: noop=%u reason=%s\n", tracebacks.flags & KPT_OBJECT_NOOP,
               error_text(tracebacks.ops->last_error, tracebacks.self));
    CHECK(tracebacks.ops->gather(tracebacks.self, KPT_GATHER_SCRIPT, 0, &one) == KPT_OK, "gather");
    if (loud) printf("gathered: %u\n", one.script);
    CHECK(tracebacks.ops->release(tracebacks.self, &one, 1) == KPT_OK, "release");
    CHECK(tracebacks.ops->destroy(tracebacks.self) == KPT_OK, "destroy");
}

static void report(int loud)
{
    bound *b = bind_host("a \"small\" host");
    kpt_tracer tracer = make_tracer(b);
    kpt_memory_tracer memory = make_memory(b);
    kpt_observer observer = make_observer(b);
    kpt_tracebacks tracebacks = make_tracebacks(b);
    uint64_t activities;
    if (loud) {
        printf("tracer: noop=%u reason=%s\n", tracer.flags & KPT_OBJECT_NOOP,
               error_text(tracer.ops->last_error, tracer.self));
        printf("memory: noop=%u reason=%s\n", memory.flags & KPT_OBJECT_NOOP,
               error_text(memory.ops->last_error, memory.self));
        printf("observer: noop=%u reason=%s\n", observer.flags & KPT_OBJECT_NOOP,
               error_text(observer.ops->last_error, observer.self));
    }
    if (tracebacks.self) gather(tracebacks, loud);
    activities = live_through(tracer);
    if (loud) printf("activities: %llu\n", (unsigned long long)activities);
    CHECK(tracer.ops->destroy(tracer.self) == KPT_OK, "destroy");
    CHECK(memory.ops->destroy(memory.self) == KPT_OK, "destroy");
    CHECK(observer.ops->destroy(observer.self) == KPT_OK, "destroy");
    for (uint32_t i = 0; loud && i < b->host.call_count; i++)
        if (strncmp(b->host.calls[i], "log: ", 5) == 0) printf("%s\n", b->host.calls[i]);
    release(b);
}

void run_silent(void)
{
    report(0);
}

void run_report(void)
{
    report(1);
}
