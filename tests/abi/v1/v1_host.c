/* v1_host.c: a host as it was written for version 1.0 of the contract, and never touched again: it
 * shows that plugins of today serve an old host. It compiles against tests/v1/abi only.
 *
 * usage: v1_host PLUGIN noop|ACTIVITIES      how much the plugin's tracer is to deliver */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "kpt.h"

#define EXPECT(condition) ((condition) ? (void)0 : give_up(#condition, __LINE__))

typedef struct state {
    kpt_tracer_make_fn make_tracer;
    void *tracer_ctx;
    kpt_memory_make_fn make_memory;
    void *memory_ctx;
    kpt_observer_make_fn make_observer;
    void *observer_ctx;
    uint64_t blocks;
    uint64_t activities;
    uint64_t names;
    uint64_t threads;
    int64_t last_ns;
    uint64_t converted;
    uint64_t chunks;
} state;

static void give_up(const char *condition, int line)
{
    printf("v1_host.c:%d: %s does not hold\n", line, condition);
    exit(EXIT_FAILURE);
}

static kpt_status register_tracer(void *ctx, kpt_tracer_make_fn make, void *make_ctx)
{
    state *s = ctx;
    s->make_tracer = make;
    s->tracer_ctx = make_ctx;
    return KPT_OK;
}

static kpt_status register_memory_tracer(void *ctx, kpt_memory_make_fn make, void *make_ctx)
{
    state *s = ctx;
    s->make_memory = make;
    s->memory_ctx = make_ctx;
    return KPT_OK;
}

static kpt_status register_observer(void *ctx, kpt_observer_make_fn make, void *make_ctx)
{
    state *s = ctx;
    s->make_observer = make;
    s->observer_ctx = make_ctx;
    return KPT_OK;
}

static void take_log(void *ctx, uint32_t level, kpt_str text)
{
    (void)ctx;
    EXPECT(level >= KPT_LOG_DEBUG && level <= KPT_LOG_ERROR);
    printf("log: %.*s\n", (int)text.size, text.data);
}

static void *take_alloc(void *ctx, uint64_t size)
{
    ((state *)ctx)->blocks++;
    return malloc((size_t)size);
}

static void take_dealloc(void *ctx, void *memory, uint64_t size)
{
    (void)size;
    ((state *)ctx)->blocks--;
    free(memory);
}

static uint64_t now_ticks(void *ctx)
{
    (void)ctx;
    return 1000;
}

static uint64_t thread_attach(void *ctx, uint64_t os_tid)
{
    (void)ctx;
    return os_tid * 2;
}

static uint64_t on_watched_call(void *ctx, uint64_t watch, void *self, uint64_t call_id)
{
    (void)ctx;
    (void)self;
    return watch * 10 + call_id;
}

static void convert(void *ctx, const uint64_t *ticks, int64_t *ns, uint64_t count)
{
    ((state *)ctx)->converted += count;
    for (uint64_t i = 0; i < count; i++)
        ns[i] = (int64_t)ticks[i] + 7;
}

static kpt_status take_chunk(void *ctx, const kpt_chunk *chunk)
{
    EXPECT(chunk->struct_size >= KPT_CHUNK_V1_SIZE && chunk->size_bytes > 0);
    ((state *)ctx)->chunks++;
    return KPT_OK;
}

static kpt_status take_batch(void *ctx, const kpt_batch *batch)
{
    state *s = ctx;
    EXPECT(batch->struct_size >= KPT_BATCH_V1_SIZE);
    EXPECT(!batch->activity_count || batch->activity_stride >= KPT_ACTIVITY_V1_SIZE);
    for (uint32_t i = 0; i < batch->name_count; i++) {
        kpt_name name;
        memcpy(&name, (const char *)batch->names + (size_t)i * batch->name_stride, sizeof name);
        EXPECT(name.display.size > 0);
        s->names++;
    }
    s->threads += batch->thread_count;
    for (uint32_t i = 0; i < batch->activity_count; i++) {
        kpt_activity a;
        memcpy(&a, (const char *)batch->activities + (size_t)i * batch->activity_stride, sizeof a);
        EXPECT(a.id > 0 && a.start_ns <= a.end_ns);
        EXPECT(batch->order != KPT_ORDER_START || a.start_ns >= s->last_ns);
        EXPECT((a.phase == KPT_PHASE_COMPLETE) == (batch->order != KPT_ORDER_TIME));
        s->last_ns = a.start_ns;
        s->activities += a.phase != KPT_PHASE_END;
    }
    return KPT_OK;
}

static void deliver_in_all_orders(state *s, kpt_tracer t, uint64_t wanted)
{
    for (uint32_t order = KPT_ORDER_THREAD; order <= KPT_ORDER_START; order++) {
        kpt_delivery d;
        KPT_INIT(&d);
        d.order = order;
        d.convert = convert;
        d.convert_ctx = s;
        d.sink = take_batch;
        d.sink_ctx = s;
        s->activities = 0;
        s->last_ns = 0;
        EXPECT(t.ops->get_events(t.self, &d) == KPT_OK);
        EXPECT(s->activities == wanted);
        s->last_ns = 0;
        EXPECT(t.ops->snapshot(t.self, &d) == KPT_OK && s->activities == 2 * wanted);
    }
    EXPECT(!wanted || (s->names && s->threads && s->converted));
}

static void use_tracer(state *s, const kpt_plugin_info *info, uint64_t wanted)
{
    kpt_filter filter = {KPT_FILTER_EXCLUDE, KPT_MATCH_MODULE, kpt_str_of("nobody")};
    kpt_watch watch = {4, s};
    kpt_chunk_sink sink;
    kpt_tracer_args args;
    kpt_tracer t;
    kpt_stats stats;
    char text[200] = "";
    KPT_INIT(&sink);
    sink.sealed = take_chunk;
    sink.chunk_ctx = s;
    KPT_INIT(&args);
    args.filters = &filter;
    args.filter_count = 1;
    args.filter_stride = sizeof filter;
    args.watches = &watch;
    args.watch_count = 1;
    args.watch_stride = sizeof watch;
    args.chunk_sink = &sink;
    KPT_INIT(&t);
    EXPECT(s->make_tracer(s->tracer_ctx, &args, &t) == KPT_OK);
    EXPECT(t.ops && t.ops->struct_size >= KPT_TRACER_OPS_V1_SIZE && t.self);
    EXPECT(t.ops->last_error(t.self, text, sizeof text, NULL) == KPT_OK);
    EXPECT(!(t.flags & KPT_OBJECT_NOOP) == (wanted > 0));
    printf("tracer: %s\n", wanted ? "it records" : text);
    KPT_INIT(&stats);
    EXPECT(t.ops->get_stats(t.self, &stats) == KPT_OK && stats.state == KPT_STATE_RUNNING);
    EXPECT(t.ops->register_gc_callback(t.self) == KPT_OK);
    EXPECT(t.ops->restart(t.self) == KPT_E_STATE);
    EXPECT(t.ops->stop(t.self) == KPT_OK);
    EXPECT(t.ops->stop(t.self) == KPT_E_STATE);
    EXPECT(t.ops->last_error(t.self, text, sizeof text, NULL) == KPT_OK && text[0]);
    EXPECT(t.ops->restart(t.self) == KPT_OK && t.ops->stop(t.self) == KPT_OK);
    deliver_in_all_orders(s, t, wanted);
    EXPECT(t.ops->get_stats(t.self, &stats) == KPT_OK && stats.state == KPT_STATE_STOPPED);
    EXPECT(stats.chunks_sealed == s->chunks);
    EXPECT(info->detach(info->self) == KPT_E_STATE);
    EXPECT(t.ops->destroy(t.self) == KPT_OK);
    EXPECT(t.ops->stop(t.self) == KPT_E_HANDLE);
}

static void use_memory(state *s)
{
    kpt_memory_args args;
    kpt_memory_tracer m;
    KPT_INIT(&args);
    args.max_frames = 8;
    KPT_INIT(&m);
    EXPECT(s->make_memory(s->memory_ctx, &args, &m) == KPT_OK);
    EXPECT(m.ops && m.ops->struct_size >= KPT_MEMORY_OPS_V1_SIZE && m.self);
    EXPECT(m.ops->start(m.self) == KPT_OK && m.ops->stop(m.self) == KPT_OK);
    EXPECT(m.ops->export_memory_history(m.self, kpt_str_of("")) == KPT_E_INVALID);
    EXPECT(m.ops->destroy(m.self) == KPT_OK);
}

static void use_observer(state *s)
{
    const int64_t sizes[] = {2, 3};
    kpt_tensor tensor;
    kpt_value values[] = {{.kind = KPT_VALUE_INT, .number = 5}, {.kind = KPT_VALUE_TENSOR}};
    kpt_observer_args args;
    kpt_observer o;
    kpt_op op;
    uint64_t id = 1;
    KPT_INIT(&tensor);
    tensor.dimensions = 2;
    tensor.sizes = sizes;
    tensor.dtype = kpt_str_of("float");
    values[1].tensor = &tensor;
    KPT_INIT(&op);
    op.name = kpt_str_of("aten::add");
    op.sequence = -1;
    op.values = values;
    op.value_count = 2;
    KPT_INIT(&args);
    KPT_INIT(&o);
    EXPECT(s->make_observer(s->observer_ctx, &args, &o) == KPT_OK);
    EXPECT(o.ops && o.ops->struct_size >= KPT_OBSERVER_OPS_V1_SIZE && o.self);
    EXPECT(o.ops->start(o.self) == KPT_E_STATE);
    EXPECT(o.ops->begin_op(o.self, &op, &id) == KPT_OK && id == 0);
    EXPECT(o.ops->end_op(o.self, id, &op, kpt_str_of("")) == KPT_OK);
    EXPECT(o.ops->stop(o.self) == KPT_OK && o.ops->close(o.self) == KPT_OK);
    EXPECT(o.ops->destroy(o.self) == KPT_OK);
}

static void decline(void) {}

static kpt_status declining_make(void *ctx, const kpt_tracer_args *args, kpt_tracer *out)
{
    (void)out;
    EXPECT(args->struct_size >= KPT_TRACER_ARGS_V1_SIZE);
    ++*(uint64_t *)ctx;
    return KPT_DECLINED;
}

/* A plugin may have the registry; ours does. */
static void use_registry(state *s, const kpt_plugin_info *info)
{
    kpt_registry r;
    kpt_tracer_args args;
    kpt_tracer t;
    uint64_t token = 0, asked = 0;
    kpt_status status;
    KPT_INIT(&r);
    status = info->get_extension(info->self, kpt_str_of(KPT_EXT_REGISTRY), &r);
    if (status == KPT_E_UNSUPPORTED) return;
    EXPECT(status == KPT_OK);
    EXPECT(r.add(info->self, 99, decline, NULL, &token) == KPT_E_UNSUPPORTED);
    EXPECT(r.add(info->self, KPT_FACTORY_TRACER, (kpt_any_fn)declining_make, &asked, &token) ==
           KPT_OK);
    KPT_INIT(&args);
    KPT_INIT(&t);
    EXPECT(s->make_tracer(s->tracer_ctx, &args, &t) == KPT_OK && asked == 1);
    EXPECT(t.ops->destroy(t.self) == KPT_OK);
    EXPECT(r.remove(info->self, token) == KPT_OK);
    EXPECT(r.remove(info->self, token) == KPT_E_HANDLE);
    printf("registry: asked\n");
}

int main(int argc, char **argv)
{
    state s = {0};
    kpt_host host;
    kpt_plugin_info info;
    kpt_plugin_entry_fn entry = NULL;
    void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    EXPECT(library);
    *(void **)&entry = dlsym(library, KPT_PLUGIN_ENTRY_NAME);
    EXPECT(entry);
    KPT_INIT(&host);
    host.ctx = &s;
    host.name = kpt_str_of("a V1 host");
    host.register_tracer = register_tracer;
    host.register_memory_tracer = register_memory_tracer;
    host.register_observer = register_observer;
    host.log = take_log;
    host.alloc = take_alloc;
    host.dealloc = take_dealloc;
    host.tick_source = KPT_TICKS_HOST;
    host.now_ticks = now_ticks;
    host.thread_attach = thread_attach;
    host.on_watched_call = on_watched_call;
    KPT_INIT(&info);
    EXPECT(entry(&host, &info) == KPT_OK);
    EXPECT(info.struct_size == sizeof info && info.self && info.name.size && info.version.size);
    EXPECT(s.make_tracer && s.make_memory && s.make_observer);
    printf("plugin: %.*s, ABI %d.%" PRIu32 "\n", (int)info.name.size, info.name.data, KPT_ABI_MAJOR,
           info.abi_minor);
    use_tracer(&s, &info, strtoull(argv[2], NULL, 10));
    use_memory(&s);
    use_observer(&s);
    use_registry(&s, &info);
    EXPECT(info.detach(info.self) == KPT_OK);
    EXPECT(s.blocks == 0);
    printf("V1 host: all is well\n");
    return EXIT_SUCCESS;
}
