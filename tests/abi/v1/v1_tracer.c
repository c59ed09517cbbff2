/* v1_tracer.c: the V1 plugin's tracer: it plays three calls, outer(inner(len)), on one thread. */
#include "v1_plugin.h"

enum { CALLS = 3 };

static void seal(object *o)
{
    static const char bytes[] = "sealed";
    kpt_chunk chunk;
    if (!o->chunk_sink.sealed) return;
    KPT_INIT(&chunk);
    chunk.sequence = (uint32_t)o->chunks;
    chunk.data = bytes;
    chunk.size_bytes = sizeof bytes;
    if (o->chunk_sink.sealed(o->chunk_sink.chunk_ctx, &chunk) == KPT_OK) o->chunks++;
}

static kpt_status stop(kpt_handle self)
{
    object *o = find(self, TRACER);
    if (!o) return KPT_E_HANDLE;
    if (o->state != KPT_STATE_RUNNING) return fail(o, KPT_E_STATE, "stop: not running");
    o->state = KPT_STATE_STOPPED;
    seal(o);
    return KPT_OK;
}

static kpt_status restart(kpt_handle self)
{
    object *o = find(self, TRACER);
    if (!o) return KPT_E_HANDLE;
    if (o->state == KPT_STATE_RUNNING) return fail(o, KPT_E_STATE, "restart: running");
    o->state = KPT_STATE_RUNNING;
    return KPT_OK;
}

static kpt_status register_gc_callback(kpt_handle self)
{
    return find(self, TRACER) ? KPT_OK : KPT_E_HANDLE;
}

/* Which call comes when: CALLS of them, or twice as many by time, where the second half of the
 * numbers means ends. */
static const uint32_t visits[3][2 * CALLS] = {{2, 1, 0}, {0, 1, 2, 5, 4, 3}, {0, 1, 2}};

static kpt_status deliver(object *o, const kpt_delivery *theirs)
{
    static const uint64_t ticks[2 * CALLS] = {10, 20, 30, 40, 50, 60};
    static const char *const words[CALLS] = {"outer", "inner", "len"};
    kpt_delivery d;
    int64_t ns[2 * CALLS];
    kpt_status status = read_in(&d, sizeof d, theirs, KPT_DELIVERY_V1_SIZE);
    if (status != KPT_OK || !d.sink) return fail(o, status ? status : KPT_E_INVALID, "delivery");
    if (d.flags || d.order > KPT_ORDER_START) return fail(o, KPT_E_UNSUPPORTED, "delivery");
    for (int i = 0; i < 2 * CALLS; i++)
        ns[i] = (int64_t)ticks[i];
    if (d.convert) d.convert(d.convert_ctx, ticks, ns, 2 * CALLS);
    for (uint32_t i = 0; i < (d.order == KPT_ORDER_TIME ? 2U * CALLS : CALLS); i++) {
        uint32_t visit = visits[d.order][i], call = visit % CALLS;
        kpt_activity a = {0};
        kpt_name name = {call, 1, kpt_str_of(words[call]), kpt_str_of(words[call]), {0}, {0}};
        kpt_thread thread = {0, 0, 1, o->host_value, kpt_str_of("main")};
        kpt_batch batch;
        KPT_INIT(&batch);
        a.id = call + 1;
        a.parent_id = call;
        a.start_ns = ns[call];
        a.end_ns = ns[2 * CALLS - 1 - call];
        a.name = call;
        a.depth = call;
        a.kind = call == 2 ? KPT_KIND_C : KPT_KIND_PYTHON;
        if (d.order == KPT_ORDER_TIME) a.phase = visit < CALLS ? KPT_PHASE_BEGIN : KPT_PHASE_END;
        if (call == 0 && o->watched) {
            a.flags = KPT_ACTIVITY_WATCHED;
            a.value0 = o->watch_answer;
            a.value1 = 1;
        }
        batch.order = d.order;
        batch.activities = &a;
        batch.activity_count = 1;
        batch.activity_stride = sizeof a;
        batch.names = &name;
        batch.name_count = 1;
        batch.name_stride = sizeof name;
        batch.threads = &thread;
        batch.thread_count = i == 0;
        batch.thread_stride = sizeof thread;
        status = d.sink(d.sink_ctx, &batch);
        if (status != KPT_OK) return fail(o, status, "the sink ended it");
    }
    return KPT_OK;
}

static kpt_status get_events(kpt_handle self, const kpt_delivery *delivery)
{
    object *o = find(self, TRACER);
    if (!o) return KPT_E_HANDLE;
    if (o->state == KPT_STATE_RUNNING) return fail(o, KPT_E_STATE, "get_events: running");
    return deliver(o, delivery);
}

static kpt_status snapshot(kpt_handle self, const kpt_delivery *delivery)
{
    object *o = find(self, TRACER);
    return o ? deliver(o, delivery) : KPT_E_HANDLE;
}

static kpt_status get_stats(kpt_handle self, kpt_stats *out)
{
    object *o = find(self, TRACER);
    kpt_status status = check_out(out, KPT_STATS_V1_SIZE);
    kpt_stats stats;
    if (!o) return KPT_E_HANDLE;
    if (status != KPT_OK) return fail(o, status, "get_stats: out");
    KPT_INIT(&stats);
    stats.state = o->state;
    stats.events = 2ULL * CALLS;
    stats.threads = 1;
    stats.chunks_sealed = o->chunks;
    write_out(out, &stats, sizeof stats);
    return KPT_OK;
}

static kpt_status get_extension(kpt_handle self, kpt_str name, void *out)
{
    object *o = find(self, TRACER);
    kpt_memory_args memory;
    kpt_observer_args observer;
    void *bond;
    if (!o) return KPT_E_HANDLE;
    bond = (void *)(uintptr_t)o->bond;
    KPT_INIT(&memory);
    KPT_INIT(&observer);
    if (kpt_str_is(name, KPT_EXT_MEMORY)) return make_memory(bond, &memory, out);
    if (kpt_str_is(name, KPT_EXT_OBSERVER)) return make_observer(bond, &observer, out);
    return fail(o, KPT_E_UNSUPPORTED, "no such extension");
}

static kpt_status destroy_tracer(kpt_handle self)
{
    return destroy(self, TRACER);
}

static kpt_status mark(kpt_handle self, uint32_t what, uint64_t number)
{
    (void)number;
    if (!find(self, TRACER)) return KPT_E_HANDLE;
    return what < KPT_MARK_POINT || what > KPT_MARK_END ? KPT_E_INVALID : KPT_OK;
}

kpt_status make_tracer(void *make_ctx, const kpt_tracer_args *args, kpt_tracer *out)
{
    static const kpt_tracer_ops ops = {
        sizeof ops, 0,         stop,       restart,       register_gc_callback, get_events,
        snapshot,   get_stats, last_error, get_extension, destroy_tracer,       mark};
    object *b = find((kpt_handle)(uintptr_t)make_ctx, BOND), *o = NULL;
    kpt_tracer_args a;
    kpt_chunk_sink sink = {0};
    kpt_status status = read_in(&a, sizeof a, args, KPT_TRACER_ARGS_V1_SIZE);
    if (!b) return KPT_E_HANDLE;
    if (status == KPT_OK && a.flags) status = KPT_E_UNSUPPORTED;
    if (status == KPT_OK && a.watch_count && a.watch_stride < KPT_WATCH_V1_SIZE)
        status = KPT_E_SIZE;
    if (status == KPT_OK && a.chunk_sink)
        status = read_in(&sink, sizeof sink, a.chunk_sink, KPT_CHUNK_SINK_V1_SIZE);
    if (status != KPT_OK) return fail(b, status, "args");
    status = make(make_ctx, TRACER, &ops, out, &o);
    if (status != KPT_OK) return status;
    o->chunk_sink = sink;
    if (o->host.thread_attach) o->host_value = o->host.thread_attach(o->host.ctx, 1);
    if (a.watch_count && o->host.on_watched_call) {
        o->watched = 1;
        o->watch_answer = o->host.on_watched_call(o->host.ctx, a.watches->watch, NULL, 1);
    }
    return KPT_OK;
}
