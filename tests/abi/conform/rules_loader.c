/* rules_loader.c: R771–R778: tracers made from chunks, an extension (since 1.1). */
#include "tests/abi/conform/chunk_log.h"
#include "tests/abi/conform/recording.h"

static kpt_loader open_loader(conform *c)
{
    kpt_loader loader;
    KPT_INIT(&loader);
    if (c->info.get_extension(c->info.self, kpt_str_of(KPT_EXT_LOADER), &loader) != KPT_OK)
        conform_unreached(c, "the plugin has no loader");
    return loader;
}

static kpt_status try_load(conform *c, chunk_log *log, kpt_tracer *out)
{
    const kpt_loader loader = open_loader(c);
    const kpt_load_args args = chunk_log_args(log);
    KPT_INIT(out);
    return loader.load(c->info.self, &args, out);
}

static void load(conform *c, chunk_log *log, kpt_tracer *out)
{
    kpt_status status = try_load(c, log, out);
    if (status != KPT_OK) conform_unreached(c, "load returned %s", kpt_status_name(status));
}

static int same_text(kpt_str a, kpt_str b)
{
    return a.size == b.size && (!a.size || memcmp(a.data, b.data, a.size) == 0);
}

static const kpt_name *name_of(const recording *r, uint32_t index)
{
    uint32_t i = 0;
    while (r->names[i].index != index)
        i++;
    return &r->names[i];
}

static const kpt_thread *thread_of(const recording *r, uint32_t index)
{
    uint32_t i = 0;
    while (r->threads[i].index != index)
        i++;
    return &r->threads[i];
}

/* Returns the first difference between the recordings, or NULL if there is none. */
static const char *difference(const recording *a, const recording *b)
{
    if (a->activity_count != b->activity_count) return "the number of activities differs";
    for (uint32_t i = 0; i < a->activity_count; i++) {
        const kpt_activity *x = &a->activities[i];
        const kpt_activity *y = &b->activities[i];
        const kpt_name *m = name_of(a, x->name);
        const kpt_name *n = name_of(b, y->name);
        const kpt_thread *s = thread_of(a, x->thread);
        const kpt_thread *t = thread_of(b, y->thread);
        if (x->start_ns != y->start_ns || x->end_ns != y->end_ns) return "a time differs";
        if (x->id != y->id || x->parent_id != y->parent_id) return "an id differs";
        if (x->kind != y->kind || x->flags != y->flags) return "a kind or a flag differs";
        if (!same_text(m->display, n->display) || !same_text(m->qualname, n->qualname) ||
            !same_text(m->file, n->file) || m->first_line != n->first_line)
            return "a name differs";
        /* It may have ended in between. */
        if (s->os_tid != t->os_tid || ((s->flags ^ t->flags) & ~(uint32_t)KPT_THREAD_ENDED) ||
            !same_text(s->name, t->name))
            return "a thread differs";
    }
    return NULL;
}

static void round_trip(conform *c)
{
    kpt_tracer t;
    kpt_tracer loaded;
    const char *differs;
    const recording *before;
    conform_record(c, &t);
    if (t.ops->restart(t.self) != KPT_OK) conform_unreached(c, "restart failed");
    conform_workload(c);
    if (t.ops->stop(t.self) != KPT_OK) conform_unreached(c, "stop failed");
    before = recording_take(c, &t, KPT_ORDER_THREAD);
    load(c, chunk_log_take(c, &t, KPT_CHUNKS_WHOLE), &loaded);
    differs = difference(before, recording_take(c, &loaded, KPT_ORDER_THREAD));
    EXPECT(c, !differs, "the loaded recording differs: %s", differs);
}

static kpt_status count_batch(void *ctx, const kpt_batch *batch)
{
    *(uint64_t *)ctx += batch->activity_count;
    return KPT_OK;
}

static uint64_t count_now(conform *c, const kpt_tracer *t)
{
    uint64_t count = 0;
    kpt_delivery delivery;
    KPT_INIT(&delivery);
    delivery.sink = count_batch;
    delivery.sink_ctx = &count;
    if (t->ops->snapshot(t->self, &delivery) != KPT_OK) conform_unreached(c, "snapshot failed");
    if (!count) conform_unreached(c, "nothing was delivered");
    return count;
}

static void while_running(conform *c)
{
    kpt_tracer t;
    kpt_tracer loaded;
    uint64_t now;
    uint64_t then;
    conform_make(c, &t);
    conform_workload(c);
    now = count_now(c, &t);
    load(c, chunk_log_take(c, &t, KPT_CHUNKS_WHOLE), &loaded);
    then = count_now(c, &loaded);
    EXPECT(c, now == then, "the tracer delivers %llu activities, the loaded recording %llu",
           (unsigned long long)now, (unsigned long long)then);
}

static void bad_args(conform *c)
{
    static chunk_log log;
    kpt_loader loader;
    kpt_load_args args = chunk_log_args(&log);
    kpt_tracer out;
    conform_enter(c);
    loader = open_loader(c);
    KPT_INIT(&out);
    EXPECT_STATUS(c, KPT_E_INVALID, loader.load(c->info.self, NULL, &out));
    EXPECT_STATUS(c, KPT_E_INVALID, loader.load(c->info.self, &args, NULL));
    EXPECT_STATUS(c, KPT_E_HANDLE, loader.load(0, &args, &out));
    out.struct_size = KPT_TRACER_V1_SIZE - 1;
    EXPECT_STATUS(c, KPT_E_SIZE, loader.load(c->info.self, &args, &out));
    KPT_INIT(&out);
    args.struct_size = KPT_LOAD_ARGS_V1_SIZE - 1;
    EXPECT_STATUS(c, KPT_E_SIZE, loader.load(c->info.self, &args, &out));
    args = chunk_log_args(&log);
    args.flags = 1;
    EXPECT_STATUS(c, KPT_E_UNSUPPORTED, loader.load(c->info.self, &args, &out));
    args.flags = 0;
    args.next = NULL;
    EXPECT_STATUS(c, KPT_E_INVALID, loader.load(c->info.self, &args, &out));
    EXPECT(c, !out.ops && !out.self, "out has a tracer's handle after a failure");
}

/* Returns chunks that the plugin delivered, so that a rule can change one field of valid chunks. */
static chunk_log *some_chunks(conform *c)
{
    kpt_tracer t;
    conform_record(c, &t);
    return chunk_log_take(c, &t, KPT_CHUNKS_WHOLE);
}

static void unknown_format(conform *c)
{
    chunk_log *log = some_chunks(c);
    kpt_tracer out;
    log->chunks[0].format ^= 0x40000000;
    EXPECT_STATUS(c, KPT_E_UNSUPPORTED, try_load(c, log, &out));
}

/* Every table of other bytes, and every chunk on another address. */
static void garbage(conform *c)
{
    chunk_log *log = some_chunks(c);
    kpt_tracer out;
    for (uint32_t i = 0; i < log->count; i++) {
        kpt_chunk *chunk = &log->chunks[i];
        const kpt_chunk intact = *chunk;
        chunk->data = (const char *)intact.data + 1;
        EXPECT_STATUS(c, KPT_E_INVALID, try_load(c, log, &out));
        chunk->data = NULL;
        EXPECT_STATUS(c, KPT_E_INVALID, try_load(c, log, &out));
        *chunk = intact;
        if (chunk->thread != KPT_CHUNK_TABLE) continue;
        chunk->data = memset(calloc(1, chunk->size_bytes), 0xA5, chunk->size_bytes);
        EXPECT_STATUS(c, KPT_E_INVALID, try_load(c, log, &out));
        *chunk = intact;
    }
    EXPECT_STATUS(c, KPT_OK, try_load(c, log, &out));
}

static void host_ends(conform *c)
{
    static chunk_log log;
    kpt_tracer out;
    conform_enter(c);
    log.last = 1234;
    EXPECT_STATUS(c, 1234, try_load(c, &log, &out));
    EXPECT(c, !out.ops && !out.self, "out has a tracer's handle after a failure");
}

static void stopped(conform *c)
{
    chunk_log *log = some_chunks(c);
    const chunk_log *again;
    kpt_tracer t;
    kpt_stats stats;
    load(c, log, &t);
    KPT_INIT(&stats);
    EXPECT_STATUS(c, KPT_OK, t.ops->get_stats(t.self, &stats));
    EXPECT(c, stats.state == KPT_STATE_STOPPED, "get_stats does not report KPT_STATE_STOPPED");
    EXPECT_STATUS(c, KPT_E_STATE, t.ops->stop(t.self));
    EXPECT(c, t.ops->restart(t.self) < 0, "restart did not fail");
    EXPECT_STATUS(c, KPT_OK, t.ops->mark(t.self, KPT_MARK_POINT, 1));
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->get_chunks(t.self, NULL));
    again = chunk_log_take(c, &t, KPT_CHUNKS_WHOLE);
    EXPECT(c, again->count == log->count, "it delivers %u chunks of %u", again->count, log->count);
}

static void bound(conform *c)
{
    kpt_tracer t;
    static chunk_log log;
    conform_enter(c);
    load(c, &log, &t);
    EXPECT_STATUS(c, KPT_E_STATE, c->info.detach(c->info.self));
    EXPECT_STATUS(c, KPT_OK, t.ops->destroy(t.self));
    EXPECT_STATUS(c, KPT_OK, c->info.detach(c->info.self));
}

const conform_rule conform_loader_rules[] = {
    RULE(R771, "whole chunks, when loaded, rebuild the same recording", round_trip),
    RULE(R772, "whole chunks of a running tracer can be loaded, too", while_running),
    RULE(R773, "load refuses arguments that are NULL, too small or unknown", bad_args),
    RULE(R774, "load of an unknown format is KPT_E_UNSUPPORTED", unknown_format),
    RULE(R775, "load of damaged or unaligned data is KPT_E_INVALID", garbage),
    RULE(R776, "an error that next returns ends the load, which returns it", host_ends),
    RULE(R777, "a loaded tracer can't be restarted, and delivers its chunks", stopped),
    RULE(R778, "detach is KPT_E_STATE while a loaded tracer lives", bound),
    {NULL, NULL, NULL},
};
