/* rules_memory.c: R71x, R720, R721: the memory tracer. Its report exists since 1.1, its stream since 1.2. */
#include <unistd.h>

#include "tests/abi/conform/conform.h"

static void makes_memory(conform *c)
{
    kpt_memory_tracer m;
    conform_make_memory(c, &m);
    EXPECT(c, m.ops->struct_size >= KPT_MEMORY_OPS_V1_SIZE, "struct_size is %u, below %u",
           m.ops->struct_size, KPT_MEMORY_OPS_V1_SIZE);
    EXPECT(c,
           m.ops->start && m.ops->stop && m.ops->export_memory_history && m.ops->last_error &&
               m.ops->destroy,
           "a function is missing");
}

static void repeats(conform *c)
{
    kpt_memory_tracer m;
    conform_make_memory(c, &m);
    EXPECT_STATUS(c, KPT_OK, m.ops->stop(m.self));
    EXPECT_STATUS(c, KPT_OK, m.ops->start(m.self));
    EXPECT_STATUS(c, KPT_OK, m.ops->start(m.self));
    EXPECT_STATUS(c, KPT_OK, m.ops->stop(m.self));
    EXPECT_STATUS(c, KPT_OK, m.ops->stop(m.self));
}

static void exports(conform *c)
{
    kpt_memory_tracer m;
    char path[64];
    kpt_status before;
    kpt_status running;
    kpt_status after;
    conform_make_memory(c, &m);
    conform_fresh_path(c, path, sizeof path);
    before = m.ops->export_memory_history(m.self, kpt_str_of(path));
    (void)m.ops->start(m.self);
    running = m.ops->export_memory_history(m.self, kpt_str_of(path));
    (void)m.ops->stop(m.self);
    after = m.ops->export_memory_history(m.self, kpt_str_of(path));
    conform_remove_path(path);
    conform_expect_status(c, KPT_OK, before, "export before start");
    conform_expect_status(c, KPT_OK, running, "export while running");
    conform_expect_status(c, KPT_OK, after, "export after stop");
}

static void bad_paths(conform *c)
{
    const kpt_str none = {NULL, 0};
    const kpt_str empty = {"", 0};
    const kpt_str with_nul = {"a\0b", 3};
    kpt_memory_tracer m;
    conform_make_memory(c, &m);
    EXPECT_STATUS(c, KPT_E_INVALID, m.ops->export_memory_history(m.self, none));
    EXPECT_STATUS(c, KPT_E_INVALID, m.ops->export_memory_history(m.self, empty));
    EXPECT_STATUS(c, KPT_E_INVALID, m.ops->export_memory_history(m.self, with_nul));
}

static void no_file(conform *c)
{
    kpt_memory_tracer m;
    char path[64];
    int there;
    conform_make_memory(c, &m);
    conform_fresh_path(c, path, sizeof path);
    (void)m.ops->start(m.self);
    (void)m.ops->export_memory_history(m.self, kpt_str_of(path));
    (void)m.ops->stop(m.self);
    (void)m.ops->destroy(m.self);
    there = access(path, F_OK) == 0;
    conform_remove_path(path);
    if (m.flags & KPT_OBJECT_NOOP)
        EXPECT(c, !there, "a no-op has created a file");
    else
        EXPECT(c, there, "no file was created");
}

static void dead(conform *c)
{
    kpt_memory_tracer m;
    kpt_memory_report r;
    conform_make_memory(c, &m);
    if (m.ops->destroy(m.self) != KPT_OK) conform_unreached(c, "destroy failed");
    EXPECT_STATUS(c, KPT_E_HANDLE, m.ops->start(m.self));
    EXPECT_STATUS(c, KPT_E_HANDLE, m.ops->stop(m.self));
    EXPECT_STATUS(c, KPT_E_HANDLE, m.ops->export_memory_history(m.self, kpt_str_of("x")));
    EXPECT_STATUS(c, KPT_E_HANDLE, m.ops->destroy(m.self));
    KPT_INIT(&r);
    r.action = KPT_REPORT_FREE;
    if (KPT_HAS(m.ops, kpt_memory_ops, report))
        EXPECT_STATUS(c, KPT_E_HANDLE, m.ops->report(m.self, &r));
}

static void has_report(conform *c, const kpt_memory_tracer *m)
{
    if (!KPT_HAS(m->ops, kpt_memory_ops, report) || !m->ops->report)
        conform_unreached(c, "the memory tracer accepts no reports: it is of ABI 1.0");
}

static void bad_reports(conform *c)
{
    const kpt_str no_bytes = {NULL, 3};
    kpt_memory_tracer m;
    kpt_memory_report r;
    conform_make_memory(c, &m);
    has_report(c, &m);
    (void)m.ops->start(m.self);
    KPT_INIT(&r);
    r.action = KPT_REPORT_ALLOC;
    EXPECT_STATUS(c, KPT_OK, m.ops->report(m.self, &r));
    EXPECT_STATUS(c, KPT_E_INVALID, m.ops->report(m.self, NULL));
    r.category = no_bytes;
    EXPECT_STATUS(c, KPT_E_INVALID, m.ops->report(m.self, &r));
    r.category = kpt_str_of("forward");
    r.owner = no_bytes;
    EXPECT_STATUS(c, KPT_E_INVALID, m.ops->report(m.self, &r));
    r.owner = kpt_str_of("");
    r.action = 0;
    EXPECT_STATUS(c, KPT_E_UNSUPPORTED, m.ops->report(m.self, &r));
    r.action = 77;
    EXPECT_STATUS(c, KPT_E_UNSUPPORTED, m.ops->report(m.self, &r));
    r.action = KPT_REPORT_FREE;
    r.struct_size = KPT_MEMORY_REPORT_V1_SIZE - 1;
    EXPECT_STATUS(c, KPT_E_SIZE, m.ops->report(m.self, &r));
}

static void report_both(conform *c, const kpt_memory_tracer *m, uint64_t address)
{
    kpt_memory_report r;
    KPT_INIT(&r);
    r.address = address;
    r.size = 4096;
    r.device_index = -1;
    for (r.action = KPT_REPORT_ALLOC; r.action <= KPT_REPORT_FREE; r.action++)
        EXPECT_STATUS(c, KPT_OK, m->ops->report(m->self, &r));
}

static void reports(conform *c)
{
    kpt_memory_tracer m;
    conform_make_memory(c, &m);
    has_report(c, &m);
    report_both(c, &m, 1 << 20);
    (void)m.ops->start(m.self);
    report_both(c, &m, 2 << 20);
    (void)m.ops->stop(m.self);
    report_both(c, &m, 3 << 20);
}

static kpt_status count_record(void *ctx, const void *record, uint64_t size)
{
    *(uint64_t *)ctx += record && size;
    return KPT_OK;
}

static void streams(conform *c)
{
    kpt_memory_tracer m;
    uint64_t records = 0;
    uint64_t stopped;
    conform_make_memory(c, &m);
    if (!KPT_HAS(m.ops, kpt_memory_ops, stream) || !m.ops->stream)
        conform_unreached(c, "the memory tracer has no stream: it is of ABI 1.1 or before");
    EXPECT_STATUS(c, KPT_E_INVALID, m.ops->stream(m.self, NULL, NULL));
    EXPECT_STATUS(c, KPT_OK, m.ops->stream(m.self, count_record, &records));
    (void)m.ops->start(m.self);
    report_both(c, &m, 1 << 20);
    EXPECT_STATUS(c, KPT_OK, m.ops->stream(m.self, count_record, &records));
    EXPECT_STATUS(c, KPT_OK, m.ops->stop(m.self));
    stopped = records;
    if (m.flags & KPT_OBJECT_NOOP)
        EXPECT(c, !records, "a no-op has delivered a record");
    else
        EXPECT(c, records, "nothing was delivered");
    EXPECT_STATUS(c, KPT_OK, m.ops->destroy(m.self));
    EXPECT(c, records == stopped, "a record was delivered after stop");
}

static void bad_make(conform *c)
{
    kpt_memory_args args;
    kpt_memory_tracer m;
    conform_make_memory(c, &m);
    (void)m.ops->destroy(m.self);
    KPT_INIT(&args);
    KPT_INIT(&m);
    EXPECT_STATUS(c, KPT_E_INVALID, c->host.make_memory(c->host.memory_ctx, NULL, &m));
    EXPECT_STATUS(c, KPT_E_INVALID, c->host.make_memory(c->host.memory_ctx, &args, NULL));
    args.struct_size = KPT_MEMORY_ARGS_V1_SIZE - 1;
    EXPECT_STATUS(c, KPT_E_SIZE, c->host.make_memory(c->host.memory_ctx, &args, &m));
    KPT_INIT(&args);
    m.struct_size = KPT_MEMORY_TRACER_V1_SIZE - 1;
    EXPECT_STATUS(c, KPT_E_SIZE, c->host.make_memory(c->host.memory_ctx, &args, &m));
    m.struct_size = sizeof m;
    args.flags = 1U << 31;
    EXPECT_STATUS(c, KPT_E_UNSUPPORTED, c->host.make_memory(c->host.memory_ctx, &args, &m));
}

static void from_tracer(conform *c)
{
    kpt_tracer t;
    kpt_memory_tracer m;
    conform_make(c, &t);
    KPT_INIT(&m);
    EXPECT_STATUS(c, KPT_OK, t.ops->get_extension(t.self, kpt_str_of(KPT_EXT_MEMORY), &m));
    EXPECT(c, m.ops && m.self, "no object was made");
    EXPECT_STATUS(c, KPT_OK, m.ops->destroy(m.self));
}

const conform_rule conform_memory_rules[] = {
    RULE(R711, "make returns a memory tracer with a complete ops table", makes_memory),
    RULE(R712, "a repeated start or stop changes nothing", repeats),
    RULE(R713, "export is legal before start, while running and after stop", exports),
    RULE(R714, "an export without a usable path is KPT_E_INVALID", bad_paths),
    RULE(R715, "an export creates its file; a no-op creates none", no_file),
    RULE(R716, "every call on a destroyed memory tracer is KPT_E_HANDLE", dead),
    RULE(R717, "bad args or out of a memory tracer are refused", bad_make),
    RULE(R718, "a tracer's KPT_EXT_MEMORY is a memory tracer", from_tracer),
    RULE(R719, "invalid reports are refused", bad_reports),
    RULE(R720, "a report is legal before start, while running and after stop", reports),
    RULE(R721, "a stream needs a sink, delivers to it until stop, and may be called again",
         streams),
    {NULL, NULL, NULL},
};
