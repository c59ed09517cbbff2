/* scenario_memory.c: the host's allocator fails at its first, second, third … call, until all calls
 * succeed: each time the failing call returns an error, and nothing leaks. */
#include <stdio.h>

#include "tests/abi/loading/helper.h"

enum { MAX_ALLOCATIONS = 1000 };

static int check_refusal(kpt_status status, const bound *b, kpt_handle self)
{
    const char *text;
    if (status == KPT_OK) return 0;
    CHECK(status == KPT_E_MEMORY, "%s", kpt_status_name(status));
    text = error_text(b->info.last_error, self);
    CHECK(strstr(text, "memory"), "the text: %s", text);
    return 1;
}

static kpt_status take_symbols(void *ctx, const kpt_symbols *symbols)
{
    *(uint64_t *)ctx += symbols->span_count;
    return KPT_OK;
}

/* Gathers and reads a traceback, as far as there is memory. */
static int gather(bound *b, kpt_tracebacks *out)
{
    kpt_traceback_maker maker;
    kpt_tracebacks_args args;
    kpt_traceback one = {0, 0, 0, 0};
    kpt_status status;
    uint64_t spans = 0;
    KPT_INIT(&maker);
    KPT_INIT(&args);
    KPT_INIT(out);
    status = b->info.get_extension(b->info.self, kpt_str_of(KPT_EXT_TRACEBACK), &maker);
    CHECK(status == KPT_OK, "%s", kpt_status_name(status));
    status = maker.make(b->info.self, &args, out);
    CHECK(!out->self == (status != KPT_OK), "what a failed make left");
    if (status != KPT_OK || !(out->flags & KPT_OBJECT_NOOP))
        return check_refusal(status, b, b->info.self);
    status = out->ops->symbolize(out->self, &one, 1, take_symbols, &spans);
    CHECK(spans == (status == KPT_OK), "a failed symbolize called the sink, or none did");
    return check_refusal(status, b, out->self);
}

/* Makes one object of each kind, as far as there is memory, and destroys all. Returns whether an allocation
 * failed. */
static int visit(bound *b)
{
    kpt_tracer_args tracer_args;
    kpt_memory_args memory_args;
    kpt_observer_args observer_args;
    kpt_tracer tracer;
    kpt_memory_tracer memory, extension;
    kpt_observer observer;
    kpt_tracebacks tracebacks;
    kpt_status status;
    int failures;
    KPT_INIT(&b->info);
    KPT_INIT(&tracer_args);
    KPT_INIT(&memory_args);
    KPT_INIT(&observer_args);
    KPT_INIT(&tracer);
    KPT_INIT(&memory);
    KPT_INIT(&extension);
    KPT_INIT(&observer);
    if (check_refusal(open_plugin()(&b->host.table, &b->info), b, 0)) {
        CHECK(!b->info.self && !b->info.detach, "a failed entry left a binding");
        return 1;
    }
    status = b->host.make_tracer(b->host.tracer_ctx, &tracer_args, &tracer);
    failures = check_refusal(status, b, b->info.self);
    CHECK(!tracer.self == (status != KPT_OK), "what a failed make left");
    status = b->host.make_memory(b->host.memory_ctx, &memory_args, &memory);
    failures += check_refusal(status, b, b->info.self);
    CHECK(!memory.self == (status != KPT_OK), "what a failed make left");
    status = b->host.make_observer(b->host.observer_ctx, &observer_args, &observer);
    failures += check_refusal(status, b, b->info.self);
    CHECK(!observer.self == (status != KPT_OK), "what a failed make left");
    failures += gather(b, &tracebacks);
    if (tracer.self) {
        status = tracer.ops->get_extension(tracer.self, kpt_str_of(KPT_EXT_MEMORY), &extension);
        failures += check_refusal(status, b, b->info.self);
        if (status != KPT_OK)
            CHECK(strstr(error_text(tracer.ops->last_error, tracer.self), "MEMORY"),
                  "the tracer has no error text");
        CHECK(tracer.ops->destroy(tracer.self) == KPT_OK, "destroy");
    }
    if (extension.self) CHECK(extension.ops->destroy(extension.self) == KPT_OK, "destroy");
    if (memory.self) CHECK(memory.ops->destroy(memory.self) == KPT_OK, "destroy");
    if (observer.self) CHECK(observer.ops->destroy(observer.self) == KPT_OK, "destroy");
    if (tracebacks.self) CHECK(tracebacks.ops->destroy(tracebacks.self) == KPT_OK, "destroy");
    CHECK(b->info.detach(b->info.self) == KPT_OK, "detach");
    return failures;
}

void run_failing_alloc(void)
{
    static bound b;
    uint64_t nth = 0;
    int failures;
    do {
        CHECK(++nth < MAX_ALLOCATIONS, "it never succeeds");
        mock_host_init(&b.host, "poor");
        b.host.fail_alloc_at = nth;
        failures = visit(&b);
        CHECK(failures == (b.host.alloc_calls >= nth), "%d failures at allocation %llu", failures,
              (unsigned long long)nth);
        CHECK(b.host.live_blocks == 0, "allocation %llu failed and %llu blocks are left",
              (unsigned long long)nth, (unsigned long long)b.host.live_blocks);
        CHECK(b.host.bad_frees == 0, "a wrong free after allocation %llu", (unsigned long long)nth);
    } while (failures);
    printf("allocations: %llu\n", (unsigned long long)nth - 1);
}
