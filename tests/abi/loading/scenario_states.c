/* scenario_states.c: calls in the wrong state, and on dead handles: each returns a status and sets a text,
 * and none crashes. */
#include <limits.h>

#include "tests/abi/loading/helper.h"

/* Checks that a failed call set a text that contains WORD. */
static void expect(kpt_status status, kpt_status wanted, kpt_last_error_fn last_error,
                   kpt_handle self, const char *word)
{
    const char *text = error_text(last_error, self);
    CHECK(status == wanted, "%s instead of %s: %s", kpt_status_name(status),
          kpt_status_name(wanted), text);
    CHECK(strstr(text, word), "\"%s\" has no \"%s\"", text, word);
}

/* Calls that a sink may not make: the tracer that delivers is busy. */
static kpt_status meddle(void *ctx, const kpt_batch *batch)
{
    const kpt_tracer *t = ctx;
    kpt_stats stats;
    kpt_delivery again;
    (void)batch;
    KPT_INIT(&stats);
    KPT_INIT(&again);
    again.sink = meddle;
    again.sink_ctx = ctx;
    expect(t->ops->stop(t->self), KPT_E_BUSY, t->ops->last_error, t->self, "inside");
    CHECK(t->ops->restart(t->self) == KPT_E_BUSY, "restart");
    CHECK(t->ops->register_gc_callback(t->self) == KPT_E_BUSY, "register_gc_callback");
    CHECK(t->ops->get_events(t->self, &again) == KPT_E_BUSY, "get_events");
    CHECK(t->ops->snapshot(t->self, &again) == KPT_E_BUSY, "snapshot");
    CHECK(t->ops->get_stats(t->self, &stats) == KPT_E_BUSY, "get_stats");
    CHECK(t->ops->destroy(t->self) == KPT_E_BUSY, "destroy");
    return KPT_E_IO; /* the host's own status, which the delivery returns */
}

static void try_tracer(bound *b)
{
    kpt_tracer t = make_tracer(b);
    const kpt_tracer_ops *ops = t.ops;
    kpt_delivery delivery;
    kpt_stats stats;
    kpt_memory_tracer unused;
    kpt_status status;
    KPT_INIT(&delivery);
    KPT_INIT(&stats);
    KPT_INIT(&unused);
    delivery.sink = meddle;
    delivery.sink_ctx = &t;
    expect(ops->get_events(t.self, &delivery), KPT_E_STATE, ops->last_error, t.self, "running");
    expect(ops->restart(t.self), KPT_E_STATE, ops->last_error, t.self, "running");
    CHECK(ops->stop(t.self) == KPT_OK, "stop");
    expect(ops->stop(t.self), KPT_E_STATE, ops->last_error, t.self, "stopped already");
    CHECK(ops->get_stats(t.self, &stats) == KPT_OK && stats.state == KPT_STATE_STOPPED, "stats");
    delivery.order = 3;
    expect(ops->get_events(t.self, &delivery), KPT_E_UNSUPPORTED, ops->last_error, t.self, "order");
    delivery.order = KPT_ORDER_TIME;
    delivery.sink = NULL;
    expect(ops->get_events(t.self, &delivery), KPT_E_INVALID, ops->last_error, t.self, "sink");
    delivery.sink = meddle;
    status = ops->get_events(t.self, &delivery);
    if (t.flags & KPT_OBJECT_NOOP)
        CHECK(status == KPT_OK, "a no-op has nothing to deliver");
    else
        expect(status, KPT_E_IO, ops->last_error, t.self, "sink");
    expect(ops->get_extension(t.self, kpt_str_of("kpt.nothing.v1"), &unused), KPT_E_UNSUPPORTED,
           ops->last_error, t.self, "extension");
    expect(ops->get_extension(t.self, (kpt_str){NULL, 4}, &unused), KPT_E_INVALID, ops->last_error,
           t.self, "name");
    expect(b->info.detach(b->info.self), KPT_E_STATE, b->info.last_error, b->info.self, "alive");
    CHECK(ops->restart(t.self) == KPT_OK, "after all that it still works");
    CHECK(ops->destroy(t.self) == KPT_OK, "also while it runs");
    expect(ops->destroy(t.self), KPT_E_HANDLE, ops->last_error, t.self, "no such object");
    CHECK(ops->stop(t.self) == KPT_E_HANDLE, "stop");
    CHECK(ops->restart(t.self) == KPT_E_HANDLE, "restart");
    CHECK(ops->register_gc_callback(t.self) == KPT_E_HANDLE, "register_gc_callback");
    CHECK(ops->get_events(t.self, &delivery) == KPT_E_HANDLE, "get_events");
    CHECK(ops->snapshot(t.self, &delivery) == KPT_E_HANDLE, "snapshot");
    CHECK(ops->get_stats(t.self, &stats) == KPT_E_HANDLE, "get_stats");
    CHECK(ops->get_extension(t.self, kpt_str_of(KPT_EXT_MEMORY), &unused) == KPT_E_HANDLE, "ext");
}

static void try_memory(bound *b)
{
    kpt_memory_tracer m = make_memory(b);
    static const char long_path[PATH_MAX + 1] = "x"; /* the rest is NULs: too long, and with one */
    kpt_str paths[] = {{NULL, 0}, {"", 0}, {"a\0b", 3}, {long_path, sizeof long_path}, {NULL, 5}};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        expect(m.ops->export_memory_history(m.self, paths[i]), KPT_E_INVALID, m.ops->last_error,
               m.self, "path");
    CHECK(m.ops->stop(m.self) == KPT_OK, "stop before start changes nothing");
    CHECK(m.ops->start(m.self) == KPT_OK && m.ops->start(m.self) == KPT_OK, "start twice");
    CHECK(m.ops->destroy(m.self) == KPT_OK, "destroy");
    expect(m.ops->start(m.self), KPT_E_HANDLE, m.ops->last_error, m.self, "no such object");
    CHECK(m.ops->stop(m.self) == KPT_E_HANDLE, "stop");
    CHECK(m.ops->export_memory_history(m.self, kpt_str_of("x")) == KPT_E_HANDLE, "export");
    CHECK(m.ops->destroy(m.self) == KPT_E_HANDLE, "destroy");
}

static void try_observer(bound *b)
{
    kpt_observer o = make_observer(b);
    kpt_op op;
    uint64_t id = 5;
    KPT_INIT(&op);
    expect(o.ops->start(o.self), KPT_E_STATE, o.ops->last_error, o.self, "file");
    expect(o.ops->open(o.self, kpt_str_of("")), KPT_E_INVALID, o.ops->last_error, o.self, "path");
    CHECK(o.ops->stop(o.self) == KPT_OK && o.ops->close(o.self) == KPT_OK, "nothing to change");
    CHECK(o.ops->begin_op(o.self, &op, NULL) == KPT_E_INVALID, "no op_id");
    CHECK(o.ops->begin_op(o.self, NULL, &id) == KPT_E_INVALID && id == 0, "no op");
    op.value_count = 1;
    CHECK(o.ops->begin_op(o.self, &op, &id) == KPT_E_INVALID, "values without bytes");
    op.value_count = 0;
    CHECK(o.ops->end_op(o.self, 1, &op, (kpt_str){NULL, 3}) == KPT_E_INVALID,
          "error without bytes");
    CHECK(o.ops->destroy(o.self) == KPT_OK, "destroy");
    expect(o.ops->open(o.self, kpt_str_of("x")), KPT_E_HANDLE, o.ops->last_error, o.self,
           "no such");
    CHECK(o.ops->start(o.self) == KPT_E_HANDLE, "start");
    CHECK(o.ops->stop(o.self) == KPT_E_HANDLE, "stop");
    CHECK(o.ops->close(o.self) == KPT_E_HANDLE, "close");
    CHECK(o.ops->begin_op(o.self, &op, &id) == KPT_E_HANDLE, "begin_op");
    CHECK(o.ops->end_op(o.self, 1, &op, kpt_str_of("")) == KPT_E_HANDLE, "end_op");
    CHECK(o.ops->destroy(o.self) == KPT_E_HANDLE, "destroy");
}

static void some_factory(void) {}

static void try_registry(bound *b)
{
    const kpt_plugin_info *p = &b->info;
    kpt_registry r;
    uint64_t token = 0;
    KPT_INIT(&r);
    expect(p->get_extension(p->self, kpt_str_of("kpt.nothing.v1"), &r), KPT_E_UNSUPPORTED,
           p->last_error, p->self, "extension");
    expect(p->get_extension(p->self, (kpt_str){NULL, 4}, &r), KPT_E_INVALID, p->last_error, p->self,
           "name");
    CHECK(p->get_extension(p->self, kpt_str_of(KPT_EXT_REGISTRY), &r) == KPT_OK, "registry");
    expect(r.add(p->self, KPT_FACTORY_TRACER, NULL, NULL, &token), KPT_E_INVALID, p->last_error,
           p->self, "NULL");
    expect(r.add(p->self, 9, some_factory, NULL, &token), KPT_E_UNSUPPORTED, p->last_error, p->self,
           "kind");
    expect(r.remove(p->self, 12345), KPT_E_HANDLE, p->last_error, p->self, "token");
    while (r.add(p->self, KPT_FACTORY_MEMORY, some_factory, NULL, &token) == KPT_OK)
        CHECK(token < 100, "no limit");
    expect(r.add(p->self, KPT_FACTORY_MEMORY, some_factory, NULL, &token), KPT_E_LIMIT,
           p->last_error, p->self, "too many");
    CHECK(r.add(0, KPT_FACTORY_MEMORY, some_factory, NULL, &token) == KPT_E_HANDLE, "no plugin");
    CHECK(r.remove(p->self + 1, token) == KPT_E_HANDLE, "another plugin");
}

void run_states(void)
{
    bound *b = bind_host("careless");
    kpt_plugin_info info = b->info;
    kpt_registry unused;
    KPT_INIT(&unused);
    try_tracer(b);
    try_memory(b);
    try_observer(b);
    try_registry(b);
    release(b);
    expect(info.detach(info.self), KPT_E_HANDLE, info.last_error, info.self, "no such object");
    CHECK(info.get_extension(info.self, kpt_str_of(KPT_EXT_REGISTRY), &unused) == KPT_E_HANDLE,
          "get_extension");
    CHECK(info.last_error(info.self, NULL, 8, NULL) == KPT_E_INVALID, "no buffer");
}

/* Invalid host tables: each is refused, and the text is that of handle 0. */
static void refuse(kpt_host table, kpt_status wanted, const char *word)
{
    kpt_plugin_info info;
    memset(&info, 0xEE, sizeof info);
    info.struct_size = sizeof info;
    kpt_status status = open_plugin()(&table, &info);
    CHECK(status == wanted, "%s", kpt_status_name(status));
    CHECK(!info.self && !info.detach && !info.get_extension && info.last_error,
          "after a refusal there is last_error only");
    expect(status, wanted, info.last_error, info.self, word);
}

void run_refusals(void)
{
    static mock_host host;
    kpt_host t;
    mock_host_init(&host, "wrong");
    t = host.table, t.flags = 1, refuse(t, KPT_E_UNSUPPORTED, "flags");
    t = host.table, t.tick_flags = 1, refuse(t, KPT_E_UNSUPPORTED, "flags");
    t = host.table, t.register_tracer = NULL, refuse(t, KPT_E_INVALID, "register_tracer");
    t = host.table, t.alloc = NULL, refuse(t, KPT_E_INVALID, "allocator");
    t = host.table, t.dealloc = NULL, refuse(t, KPT_E_INVALID, "allocator");
    t = host.table, t.tick_source = 5, refuse(t, KPT_E_UNSUPPORTED, "tick_source");
    t = host.table, t.now_ticks = NULL, refuse(t, KPT_E_INVALID, "now_ticks");
    t = host.table, t.name.data = NULL, refuse(t, KPT_E_INVALID, "name");
    CHECK(mock_host_count(&host, "register_") == 0, "registered all the same");
    host.register_answer = KPT_E_LIMIT;
    refuse(host.table, KPT_E_LIMIT, "refused the tracer factory");
    host.register_answer = KPT_DECLINED;
    refuse(host.table, KPT_DECLINED, "refused the tracer factory");
    CHECK(mock_host_count(&host, "register_memory") == 0,
          "after a refusal nothing more is offered");
    CHECK(host.live_blocks == 0 && host.bad_frees == 0, "memory left");
}
