/* rules_make.c: R2xx: making a tracer: refusals, how sizes are read, memory. */
#include "tests/abi/conform/conform.h"

static void gives_tracer(conform *c)
{
    kpt_tracer_args args;
    kpt_tracer tracer;
    conform_enter(c);
    KPT_INIT(&args);
    KPT_INIT(&tracer);
    EXPECT_STATUS(c, KPT_OK, conform_try_make(c, &args, &tracer));
    EXPECT(c, tracer.self, "the handle is 0");
    EXPECT(c, tracer.ops, "ops is NULL");
}

static void complete_ops(conform *c)
{
    kpt_tracer_args args;
    kpt_tracer tracer;
    const kpt_tracer_ops *ops;
    conform_enter(c);
    KPT_INIT(&args);
    KPT_INIT(&tracer);
    if (conform_try_make(c, &args, &tracer) != KPT_OK || !tracer.ops)
        conform_unreached(c, "no tracer was made");
    ops = tracer.ops;
    EXPECT(c, ops->struct_size >= KPT_TRACER_OPS_V1_SIZE, "struct_size is %u, below %u",
           ops->struct_size, KPT_TRACER_OPS_V1_SIZE);
    EXPECT(c,
           ops->stop && ops->restart && ops->register_gc_callback && ops->get_events &&
               ops->snapshot && ops->get_stats && ops->last_error && ops->get_extension &&
               ops->destroy,
           "a function is missing");
}

/* Makes a tracer with the given ARGS and OUT; the rules below check the result. */
static void make_answers(conform *c, kpt_status wanted, const kpt_tracer_args *args,
                         const char *what)
{
    kpt_tracer tracer;
    KPT_INIT(&tracer);
    conform_expect_status(c, wanted, conform_try_make(c, args, &tracer), what);
    if (wanted != KPT_OK) return;
    (void)tracer.ops->stop(tracer.self);
    EXPECT(c, tracer.ops->destroy(tracer.self) == KPT_OK, "%s: destroy failed", what);
}

/* Refusals prove nothing about a plugin that makes no tracer. */
static kpt_tracer_args must_make_first(conform *c)
{
    kpt_tracer_args args;
    kpt_tracer tracer;
    conform_make(c, &tracer);
    (void)tracer.ops->destroy(tracer.self);
    KPT_INIT(&args);
    return args;
}

static void null_args(conform *c)
{
    (void)must_make_first(c);
    make_answers(c, KPT_E_INVALID, NULL, "make with NULL args");
}

static void null_out(conform *c)
{
    kpt_tracer_args args = must_make_first(c);
    EXPECT_STATUS(c, KPT_E_INVALID, conform_try_make(c, &args, NULL));
}

static void small_args(conform *c)
{
    static const uint32_t sizes[] = {0, sizeof(uint32_t), KPT_TRACER_ARGS_V1_SIZE - 1};
    kpt_tracer_args args = must_make_first(c);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        args.struct_size = sizes[i];
        make_answers(c, KPT_E_SIZE, &args, "make with args below V1");
    }
}

static void exact_args(conform *c)
{
    kpt_tracer_args args = must_make_first(c);
    make_answers(
        c, KPT_OK,
        conform_sized(&args, sizeof args, KPT_TRACER_ARGS_V1_SIZE, KPT_TRACER_ARGS_V1_SIZE),
        "make with args of the V1 size");
}

static void large_args(conform *c)
{
    kpt_tracer_args args = must_make_first(c);
    uint32_t bytes = sizeof args + 64;
    make_answers(c, KPT_OK, conform_sized(&args, sizeof args, bytes, bytes),
                 "make with longer args");
    make_answers(c, KPT_OK, conform_sized(&args, sizeof args, UINT32_MAX, bytes),
                 "make with args that claim 4 GiB");
}

static void small_out(conform *c)
{
    static const uint32_t sizes[] = {0, sizeof(uint32_t), KPT_TRACER_V1_SIZE - 1};
    kpt_tracer_args args = must_make_first(c);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        kpt_tracer out;
        memset(&out, 0xA5, sizeof out);
        out.struct_size = sizes[i];
        EXPECT_STATUS(c, KPT_E_SIZE, conform_try_make(c, &args, &out));
        EXPECT(c,
               out.struct_size == sizes[i] &&
                   conform_filled(&out.flags, 0xA5, sizeof out - sizeof(uint32_t)),
               "it wrote into a struct of %u bytes", sizes[i]);
    }
}

static void out_bounds(conform *c)
{
    enum { TAIL = 64 };
    kpt_tracer_args args = must_make_first(c);
    kpt_tracer blank;
    kpt_tracer *out;
    KPT_INIT(&blank);
    out = conform_sized(&blank, sizeof blank, KPT_TRACER_V1_SIZE, KPT_TRACER_V1_SIZE + TAIL);
    EXPECT_STATUS(c, KPT_OK, conform_try_make(c, &args, out));
    EXPECT(c, conform_filled((char *)out + KPT_TRACER_V1_SIZE, 0xA5, TAIL),
           "it wrote past the end of the struct");
    out = conform_sized(&blank, sizeof blank, KPT_TRACER_V1_SIZE, KPT_TRACER_V1_SIZE);
    EXPECT_STATUS(c, KPT_OK, conform_try_make(c, &args, out)); /* a step further would crash */
}

static void failed_out(conform *c)
{
    kpt_tracer_args args = must_make_first(c);
    kpt_tracer out;
    memset(&out, 0xA5, sizeof out);
    out.struct_size = sizeof out;
    args.struct_size = 0;
    if (conform_try_make(c, &args, &out) == KPT_OK) conform_unreached(c, "it did not fail");
    EXPECT(c, conform_filled(&out.flags, 0, sizeof out - sizeof(uint32_t)),
           "out is not zero after a failed make");
}

static void unknown_flags(conform *c)
{
    kpt_tracer_args args = must_make_first(c);
    args.flags = 1U << 31;
    make_answers(c, KPT_E_UNSUPPORTED, &args, "make with an unknown flag");
}

static void unknown_on_full(conform *c)
{
    kpt_tracer_args args = must_make_first(c);
    args.on_full = 99;
    make_answers(c, KPT_E_UNSUPPORTED, &args, "make with an unknown on_full");
}

static void null_arrays(conform *c)
{
    kpt_tracer_args args = must_make_first(c);
    args.filter_count = 1;
    args.filter_stride = sizeof(kpt_filter);
    make_answers(c, KPT_E_INVALID, &args, "make with a filter_count, but NULL filters");
    KPT_INIT(&args);
    args.watch_count = 1;
    args.watch_stride = sizeof(kpt_watch);
    make_answers(c, KPT_E_INVALID, &args, "make with a watch_count, but NULL watches");
}

static void small_strides(conform *c)
{
    kpt_tracer_args args = must_make_first(c);
    kpt_filter filter = {KPT_FILTER_EXCLUDE, KPT_MATCH_MODULE, kpt_str_of("json")};
    kpt_watch watch = {1, &filter};
    args.filters = &filter;
    args.filter_count = 1;
    args.filter_stride = KPT_FILTER_V1_SIZE - 1;
    make_answers(c, KPT_E_SIZE, &args, "make with a filter stride below V1");
    KPT_INIT(&args);
    args.watches = &watch;
    args.watch_count = 1;
    args.watch_stride = KPT_WATCH_V1_SIZE - 1;
    make_answers(c, KPT_E_SIZE, &args, "make with a watch stride below V1");
}

static void large_strides(conform *c)
{
    enum { STRIDE = sizeof(kpt_filter) + 64 };
    kpt_tracer_args args = must_make_first(c);
    const kpt_filter filter = {KPT_FILTER_EXCLUDE, KPT_MATCH_MODULE, kpt_str_of("json")};
    char *array = mock_guarded(2 * STRIDE);
    memset(array, 0xA5, 2 * STRIDE);
    memcpy(array, &filter, sizeof filter);
    memcpy(array + STRIDE, &filter, sizeof filter);
    args.filters = (const kpt_filter *)(const void *)array;
    args.filter_count = 2;
    args.filter_stride = STRIDE;
    make_answers(c, KPT_OK, &args, "make with two filters of a larger stride");
}

static void bad_filters(conform *c)
{
    const kpt_str json = kpt_str_of("json");
    const kpt_filter bad[] = {{99, KPT_MATCH_MODULE, json}, {KPT_FILTER_EXCLUDE, 99, json}};
    const kpt_filter empty = {KPT_FILTER_EXCLUDE, KPT_MATCH_MODULE, {NULL, 0}};
    kpt_tracer_args args = must_make_first(c);
    args.filter_count = 1;
    args.filter_stride = sizeof(kpt_filter);
    for (size_t i = 0; i < 2; i++) {
        args.filters = &bad[i];
        make_answers(c, KPT_E_UNSUPPORTED, &args, "make with an unknown filter action or match");
    }
    args.filters = &empty;
    make_answers(c, KPT_E_INVALID, &args, "make with an empty filter pattern");
}

static void bad_watches(conform *c)
{
    kpt_tracer_args args = must_make_first(c);
    kpt_watch watch = {1, NULL};
    args.watches = &watch;
    args.watch_count = 1;
    args.watch_stride = sizeof watch;
    make_answers(c, KPT_E_INVALID, &args, "make with a watch without a code object");
    mock_host_init(&c->host, "kpt_conform");
    c->host.table.on_watched_call = NULL;
    conform_enter(c);
    watch.code = &watch; /* refused before the plugin reads it */
    make_answers(c, KPT_E_INVALID, &args, "make with a watch, but no on_watched_call");
}

static kpt_status refuse_chunk(void *ctx, const kpt_chunk *chunk)
{
    (void)ctx;
    (void)chunk;
    return KPT_DECLINED;
}

static void bad_chunk_sink(conform *c)
{
    kpt_tracer_args args = must_make_first(c);
    kpt_chunk_sink sink;
    KPT_INIT(&sink);
    args.chunk_sink = &sink;
    make_answers(c, KPT_E_INVALID, &args, "make with a chunk sink without a function");
    sink.sealed = refuse_chunk;
    sink.flags = 1U << 31;
    make_answers(c, KPT_E_UNSUPPORTED, &args, "make with an unknown flag of the chunk sink");
    sink.flags = 0;
    make_answers(c, KPT_OK, &args, "make with a chunk sink");
}

static void small_chunk_sink(conform *c)
{
    kpt_tracer_args args = must_make_first(c);
    kpt_chunk_sink sink;
    KPT_INIT(&sink);
    sink.sealed = refuse_chunk;
    sink.struct_size = KPT_CHUNK_SINK_V1_SIZE - 1;
    args.chunk_sink = &sink;
    make_answers(c, KPT_E_SIZE, &args, "make with a chunk sink below V1");
}

static void make_without_memory(conform *c)
{
    kpt_tracer_args args = must_make_first(c);
    kpt_status status = KPT_E_MEMORY;
    for (uint64_t at = 1; status != KPT_OK; at++) {
        uint64_t before = c->host.live_blocks;
        kpt_tracer tracer;
        KPT_INIT(&tracer);
        c->host.fail_alloc_at = c->host.alloc_calls + at;
        status = conform_try_make(c, &args, &tracer);
        if (status == KPT_OK) break;
        EXPECT(c, status == KPT_E_MEMORY, "with allocation %llu failing it returned %s",
               (unsigned long long)at, kpt_status_name(status));
        EXPECT(c, c->host.live_blocks == before,
               "with allocation %llu failing it leaked %llu blocks", (unsigned long long)at,
               (unsigned long long)(c->host.live_blocks - before));
    }
}

static void several(conform *c)
{
    enum { MANY = 8 };
    kpt_tracer tracers[MANY];
    (void)must_make_first(c);
    for (int i = 0; i < MANY; i++) {
        kpt_tracer_args args;
        KPT_INIT(&args);
        KPT_INIT(&tracers[i]);
        EXPECT_STATUS(c, KPT_OK, conform_try_make(c, &args, &tracers[i]));
        for (int k = 0; k < i; k++)
            EXPECT(c, tracers[i].self != tracers[k].self, "tracers %d and %d have the same handle",
                   i, k);
    }
}

static void failure_text(conform *c)
{
    kpt_tracer_args args = must_make_first(c);
    kpt_tracer tracer;
    char text[256] = "";
    KPT_INIT(&tracer);
    args.struct_size = 0;
    if (conform_try_make(c, &args, &tracer) == KPT_OK) conform_unreached(c, "it did not fail");
    EXPECT_STATUS(c, KPT_OK, c->info.last_error(c->info.self, text, sizeof text, NULL));
    EXPECT(c, text[0], "the plugin's last_error is empty");
}

static void out_of_range(conform *c)
{
    kpt_tracer_args args = must_make_first(c);
    args.tool_id = 6;
    make_answers(c, KPT_E_INVALID, &args, "make with tool_id 6");
    args.tool_id = 0;
    args.overhead_permille = 1001;
    make_answers(c, KPT_E_INVALID, &args, "make with overhead_permille 1001");
}

const conform_rule conform_make_rules[] = {
    RULE(R201, "make returns a tracer", gives_tracer),
    RULE(R202, "the tracer's ops table is complete", complete_ops),
    RULE(R203, "NULL args is KPT_E_INVALID", null_args),
    RULE(R204, "NULL out is KPT_E_INVALID", null_out),
    RULE(R205, "args below the V1 size is KPT_E_SIZE", small_args),
    RULE(R206, "args is not read past its struct_size", exact_args),
    RULE(R207, "args larger than the plugin's is accepted", large_args),
    RULE(R208, "out below the V1 size is KPT_E_SIZE, and not written to", small_out),
    RULE(R209, "out is not written past its struct_size", out_bounds),
    RULE(R210, "a failed make sets all fields of out after struct_size to zero", failed_out),
    RULE(R211, "unknown flags are KPT_E_UNSUPPORTED", unknown_flags),
    RULE(R212, "an unknown on_full is KPT_E_UNSUPPORTED", unknown_on_full),
    RULE(R213, "a NULL array whose count is not 0 is KPT_E_INVALID", null_arrays),
    RULE(R214, "a stride below the V1 size is KPT_E_SIZE", small_strides),
    RULE(R215, "elements of an array are located by its stride", large_strides),
    RULE(R216, "an unknown or empty filter is refused", bad_filters),
    RULE(R217, "a watch without a code object, or without on_watched_call, is KPT_E_INVALID",
         bad_watches),
    RULE(R218, "a chunk sink without a function, or with unknown flags, is refused",
         bad_chunk_sink),
    RULE(R219, "a chunk sink below the V1 size is KPT_E_SIZE", small_chunk_sink),
    RULE(R220, "a make that runs out of memory is KPT_E_MEMORY and leaks nothing",
         make_without_memory),
    RULE(R221, "several tracers can exist at once", several),
    RULE(R222, "a failed make sets the text of the plugin's last_error", failure_text),
    RULE(R223, "tool_id and overhead_permille out of range are KPT_E_INVALID", out_of_range),
    {NULL, NULL, NULL},
};
