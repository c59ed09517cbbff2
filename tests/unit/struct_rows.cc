/* struct_rows.cc: which struct of the contract goes into which call: one row for each. */
#include "struct_world.h"

namespace
{

template <typename Given> kpt_status take(void *, const Given *)
{
    return KPT_OK;
}

template <typename Struct> Struct *as(void *peer)
{
    return static_cast<Struct *>(peer);
}

/* A copy of what the struct of a peer holds of today's; the peer itself may lie anywhere. */
template <typename Struct> Struct copy_of(const void *peer)
{
    Struct local;
    uint32_t filled;
    KPT_INIT(&local);
    memcpy(&filled, peer, sizeof filled);
    memcpy(&local, peer, filled < sizeof local ? filled : sizeof local);
    return local;
}

template <typename Made> bool is_object(const void *peer)
{
    Made made = copy_of<Made>(peer);
    return made.ops && made.self && made.flags == KPT_OBJECT_NOOP;
}

template <typename Made> kpt_status destroy_after(kpt_status status, const void *peer)
{
    if (status == KPT_OK) {
        Made made = copy_of<Made>(peer);
        EXPECT_EQ(made.ops->destroy(made.self), KPT_OK);
    }
    return status;
}

kpt_status detach_after(kpt_status status, const void *peer)
{
    if (status == KPT_OK) {
        auto info = copy_of<kpt_plugin_info>(peer);
        EXPECT_EQ(info.detach(info.self), KPT_OK);
    }
    return status;
}

/* A stranger's factory that hands out the ops table under test. */
template <typename Args, typename Made, typename Ops>
kpt_status make_strange(void *make_ctx, const Args *, Made *out)
{
    out->ops = static_cast<const Ops *>(make_ctx);
    out->self = 99;
    return KPT_OK;
}

template <typename Args, typename Made, typename Ops>
kpt_status use_strange_ops(struct_world &w, uint32_t kind, void *peer,
                           kpt_status (*make)(struct_world &world, Args *args, Made *made))
{
    const auto registry = w.table<kpt_registry>(KPT_EXT_REGISTRY);
    uint64_t token = 0;
    Args args;
    Made made;
    KPT_INIT(&args);
    KPT_INIT(&made);
    auto factory = reinterpret_cast<kpt_any_fn>(make_strange<Args, Made, Ops>);
    EXPECT_EQ(registry.add(w.info.self, kind, factory, peer, &token), KPT_OK);
    kpt_status status = make(w, &args, &made);
    EXPECT_EQ(made.ops, status == KPT_OK ? peer : nullptr);
    EXPECT_EQ(registry.remove(w.info.self, token), KPT_OK);
    return status;
}

template <typename Struct> void empty(struct_world &, void *whole)
{
    KPT_INIT(as<Struct>(whole));
}

std::string of_plugin(const struct_world &w)
{
    return w.plugin_text();
}
std::string of_process(const struct_world &w)
{
    return w.process_text();
}
std::string of_tracer(const struct_world &w)
{
    return w.tracer_text();
}
std::string of_tracebacks(const struct_world &w)
{
    return w.tracebacks_text();
}

/* Empty but for one field. */
template <typename Struct, auto Field, auto Value> void with(struct_world &, void *whole)
{
    KPT_INIT(as<Struct>(whole));
    as<Struct>(whole)->*Field = Value;
}
constexpr auto prepare_delivery = with<kpt_delivery, &kpt_delivery::sink, take<kpt_batch>>;
constexpr auto prepare_sink = with<kpt_chunk_sink, &kpt_chunk_sink::sealed, take<kpt_chunk>>;

/* A recording without chunks. */
void prepare_load(struct_world &, void *whole)
{
    KPT_INIT(as<kpt_load_args>(whole));
    as<kpt_load_args>(whole)->next = [](void *, kpt_chunk *) { return kpt_status{KPT_DECLINED}; };
}

kpt_loader loader_of(struct_world &w)
{
    return w.table<kpt_loader>(KPT_EXT_LOADER);
}

kpt_status make_tracebacks(struct_world &w, const kpt_tracebacks_args *args, kpt_tracebacks *out)
{
    return w.table<kpt_traceback_maker>(KPT_EXT_TRACEBACK).make(w.info.self, args, out);
}

kpt_status extension(struct_world &w, const char *name, void *out)
{
    return w.tracer.ops->get_extension(w.tracer.self, kpt_str_of(name), out);
}

/* The test's name, the struct's V1 size, today's size, and that it has a struct_size. */
#define SIZED(name, type, upper) name, KPT_##upper##_V1_SIZE, sizeof(type), false

std::vector<row> make_rows()
{
    using W = struct_world;
    std::vector<row> rows = {
        {SIZED("kpt_host", kpt_host, HOST),
         [](W &w, void *whole) { *as<kpt_host>(whole) = w.host.table; },
         [](W &w, void *peer, uint32_t) {
             kpt_plugin_info info;
             KPT_INIT(&info);
             return detach_after(w.entry(as<kpt_host>(peer), &info), &info);
         },
         nullptr, of_process, "struct_size", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_plugin_info", kpt_plugin_info, PLUGIN_INFO), empty<kpt_plugin_info>,
         [](W &w, void *peer, uint32_t) {
             return detach_after(w.entry(&w.host.table, as<kpt_plugin_info>(peer)), peer);
         },
         [](const void *peer) {
             auto info = copy_of<kpt_plugin_info>(peer);
             return info.self && info.last_error && info.get_extension && info.detach &&
                    kpt_str_is(info.name, "kpytrace") && info.version.size > 0;
         },
         of_process, "struct_size", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_tracer_args", kpt_tracer_args, TRACER_ARGS), empty<kpt_tracer_args>,
         [](W &w, void *peer, uint32_t) { return w.try_make(as<kpt_tracer_args>(peer)); }, nullptr,
         of_plugin, "args", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_chunk_sink", kpt_chunk_sink, CHUNK_SINK), prepare_sink,
         [](W &w, void *peer, uint32_t) {
             kpt_tracer_args args;
             KPT_INIT(&args);
             args.chunk_sink = as<kpt_chunk_sink>(peer);
             return w.try_make(&args);
         },
         nullptr, of_plugin, "chunk_sink", KPT_E_SIZE, KPT_OK},
        {SIZED("kpt_chunk_sink_of_get_chunks", kpt_chunk_sink, CHUNK_SINK), prepare_sink,
         [](W &w, void *peer, uint32_t) {
             return w.tracer.ops->get_chunks(w.tracer.self, as<kpt_chunk_sink>(peer));
         },
         nullptr, of_tracer, "sink", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_loader", kpt_loader, LOADER), empty<kpt_loader>,
         [](W &w, void *peer, uint32_t) {
             return w.info.get_extension(w.info.self, kpt_str_of(KPT_EXT_LOADER), peer);
         },
         [](const void *peer) { return copy_of<kpt_loader>(peer).load != nullptr; }, of_plugin,
         "out", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_load_args", kpt_load_args, LOAD_ARGS), prepare_load,
         [](W &w, void *peer, uint32_t) {
             kpt_tracer out;
             KPT_INIT(&out);
             kpt_status status = loader_of(w).load(w.info.self, as<kpt_load_args>(peer), &out);
             return destroy_after<kpt_tracer>(status, &out);
         },
         nullptr, of_plugin, "args", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_tracer_of_load", kpt_tracer, TRACER), empty<kpt_tracer>,
         [](W &w, void *peer, uint32_t) {
             kpt_load_args args;
             prepare_load(w, &args);
             kpt_status status = loader_of(w).load(w.info.self, &args, as<kpt_tracer>(peer));
             return destroy_after<kpt_tracer>(status, peer);
         },
         [](const void *peer) {
             auto made = copy_of<kpt_tracer>(peer);
             return made.ops && made.self && !made.flags;
         },
         of_plugin, "out", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_traceback_maker", kpt_traceback_maker, TRACEBACK_MAKER),
         empty<kpt_traceback_maker>,
         [](W &w, void *peer, uint32_t) {
             return w.info.get_extension(w.info.self, kpt_str_of(KPT_EXT_TRACEBACK), peer);
         },
         [](const void *peer) { return copy_of<kpt_traceback_maker>(peer).make != nullptr; },
         of_plugin, "out", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_tracebacks_args", kpt_tracebacks_args, TRACEBACKS_ARGS),
         empty<kpt_tracebacks_args>,
         [](W &w, void *peer, uint32_t) {
             kpt_tracebacks made;
             KPT_INIT(&made);
             kpt_status status = make_tracebacks(w, as<kpt_tracebacks_args>(peer), &made);
             return destroy_after<kpt_tracebacks>(status, &made);
         },
         nullptr, of_plugin, "args", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_tracebacks", kpt_tracebacks, TRACEBACKS), empty<kpt_tracebacks>,
         [](W &w, void *peer, uint32_t) {
             kpt_tracebacks_args args;
             KPT_INIT(&args);
             kpt_status status = make_tracebacks(w, &args, as<kpt_tracebacks>(peer));
             return destroy_after<kpt_tracebacks>(status, peer);
         },
         is_object<kpt_tracebacks>, of_plugin, "out", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_traceback_stats", kpt_traceback_stats, TRACEBACK_STATS),
         empty<kpt_traceback_stats>,
         [](W &w, void *peer, uint32_t) {
             return w.tracebacks.ops->get_stats(w.tracebacks.self, as<kpt_traceback_stats>(peer));
         },
         [](const void *peer) { return copy_of<kpt_traceback_stats>(peer).stacks == 0; },
         of_tracebacks, "get_stats", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_tracer", kpt_tracer, TRACER), empty<kpt_tracer>,
         [](W &w, void *peer, uint32_t) {
             kpt_tracer_args args;
             KPT_INIT(&args);
             kpt_status status = w.host.make_tracer(w.host.tracer_ctx, &args, as<kpt_tracer>(peer));
             return destroy_after<kpt_tracer>(status, peer);
         },
         is_object<kpt_tracer>, of_plugin, "out", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_delivery", kpt_delivery, DELIVERY), prepare_delivery,
         [](W &w, void *peer, uint32_t) {
             EXPECT_EQ(w.tracer.ops->stop(w.tracer.self), KPT_OK);
             return w.tracer.ops->get_events(w.tracer.self, as<kpt_delivery>(peer));
         },
         nullptr, of_tracer, "delivery", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_delivery_of_snapshot", kpt_delivery, DELIVERY), prepare_delivery,
         [](W &w, void *peer, uint32_t) {
             return w.tracer.ops->snapshot(w.tracer.self, as<kpt_delivery>(peer));
         },
         nullptr, of_tracer, "delivery", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_stats", kpt_stats, STATS), empty<kpt_stats>,
         [](W &w, void *peer, uint32_t) {
             return w.tracer.ops->get_stats(w.tracer.self, as<kpt_stats>(peer));
         },
         [](const void *peer) { return copy_of<kpt_stats>(peer).state == KPT_STATE_RUNNING; },
         of_tracer, "get_stats", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_memory_args", kpt_memory_args, MEMORY_ARGS), empty<kpt_memory_args>,
         [](W &w, void *peer, uint32_t) {
             kpt_memory_tracer made;
             KPT_INIT(&made);
             return destroy_after<kpt_memory_tracer>(
                 w.host.make_memory(w.host.memory_ctx, as<kpt_memory_args>(peer), &made), &made);
         },
         nullptr, of_plugin, "args", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_memory_tracer", kpt_memory_tracer, MEMORY_TRACER), empty<kpt_memory_tracer>,
         [](W &w, void *peer, uint32_t) {
             kpt_memory_args args;
             KPT_INIT(&args);
             return destroy_after<kpt_memory_tracer>(
                 w.host.make_memory(w.host.memory_ctx, &args, as<kpt_memory_tracer>(peer)), peer);
         },
         is_object<kpt_memory_tracer>, of_plugin, "out", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_memory_tracer_of_extension", kpt_memory_tracer, MEMORY_TRACER),
         empty<kpt_memory_tracer>,
         [](W &w, void *peer, uint32_t) {
             return destroy_after<kpt_memory_tracer>(extension(w, KPT_EXT_MEMORY, peer), peer);
         },
         is_object<kpt_memory_tracer>, of_tracer, "get_extension", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_memory_report", kpt_memory_report, MEMORY_REPORT),
         with<kpt_memory_report, &kpt_memory_report::action, KPT_REPORT_FREE>,
         [](W &w, void *peer, uint32_t) {
             return w.memory.ops->report(w.memory.self, as<kpt_memory_report>(peer));
         },
         nullptr, nullptr, "", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_observer_args", kpt_observer_args, OBSERVER_ARGS), empty<kpt_observer_args>,
         [](W &w, void *peer, uint32_t) {
             kpt_observer made;
             KPT_INIT(&made);
             return destroy_after<kpt_observer>(
                 w.host.make_observer(w.host.observer_ctx, as<kpt_observer_args>(peer), &made),
                 &made);
         },
         nullptr, of_plugin, "args", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_observer", kpt_observer, OBSERVER), empty<kpt_observer>,
         [](W &w, void *peer, uint32_t) {
             kpt_observer_args args;
             KPT_INIT(&args);
             return destroy_after<kpt_observer>(
                 w.host.make_observer(w.host.observer_ctx, &args, as<kpt_observer>(peer)), peer);
         },
         is_object<kpt_observer>, of_plugin, "out", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_observer_of_extension", kpt_observer, OBSERVER), empty<kpt_observer>,
         [](W &w, void *peer, uint32_t) {
             return destroy_after<kpt_observer>(extension(w, KPT_EXT_OBSERVER, peer), peer);
         },
         is_object<kpt_observer>, of_tracer, "get_extension", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_op", kpt_op, OP), empty<kpt_op>,
         [](W &w, void *peer, uint32_t) {
             const kpt_observer &o = w.observer;
             uint64_t id = 99;
             kpt_status status = o.ops->begin_op(o.self, as<kpt_op>(peer), &id);
             EXPECT_EQ(id, 0U);
             EXPECT_EQ(o.ops->end_op(o.self, 1, as<kpt_op>(peer), kpt_str_of("")), status);
             return status;
         },
         nullptr, nullptr, "", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_observer_stats", kpt_observer_stats, OBSERVER_STATS), empty<kpt_observer_stats>,
         [](W &w, void *peer, uint32_t) {
             return w.observer.ops->get_stats(w.observer.self, as<kpt_observer_stats>(peer));
         },
         [](const void *peer) { return copy_of<kpt_observer_stats>(peer).ops == 0; }, nullptr, "",
         KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_registry", kpt_registry, REGISTRY), empty<kpt_registry>,
         [](W &w, void *peer, uint32_t) {
             return w.info.get_extension(w.info.self, kpt_str_of(KPT_EXT_REGISTRY), peer);
         },
         [](const void *peer) {
             auto registry = copy_of<kpt_registry>(peer);
             return registry.add && registry.remove;
         },
         of_plugin, "out", KPT_E_SIZE, KPT_E_INVALID},
        /* Tables that a stranger's factory owns. */
        {SIZED("kpt_tracer_ops", kpt_tracer_ops, TRACER_OPS), empty<kpt_tracer_ops>,
         [](W &w, void *peer, uint32_t) {
             return use_strange_ops<kpt_tracer_args, kpt_tracer, kpt_tracer_ops>(
                 w, KPT_FACTORY_TRACER, peer,
                 [](W &world, kpt_tracer_args *args, kpt_tracer *made) {
                     return world.host.make_tracer(world.host.tracer_ctx, args, made);
                 });
         },
         nullptr, of_plugin, "made no", KPT_E_INTERNAL, KPT_E_INTERNAL},
        {SIZED("kpt_memory_ops", kpt_memory_ops, MEMORY_OPS), empty<kpt_memory_ops>,
         [](W &w, void *peer, uint32_t) {
             return use_strange_ops<kpt_memory_args, kpt_memory_tracer, kpt_memory_ops>(
                 w, KPT_FACTORY_MEMORY, peer,
                 [](W &world, kpt_memory_args *args, kpt_memory_tracer *made) {
                     return world.host.make_memory(world.host.memory_ctx, args, made);
                 });
         },
         nullptr, of_plugin, "made no", KPT_E_INTERNAL, KPT_E_INTERNAL},
        {SIZED("kpt_observer_ops", kpt_observer_ops, OBSERVER_OPS), empty<kpt_observer_ops>,
         [](W &w, void *peer, uint32_t) {
             return use_strange_ops<kpt_observer_args, kpt_observer, kpt_observer_ops>(
                 w, KPT_FACTORY_OBSERVER, peer,
                 [](W &world, kpt_observer_args *args, kpt_observer *made) {
                     return world.host.make_observer(world.host.observer_ctx, args, made);
                 });
         },
         nullptr, of_plugin, "made no", KPT_E_INTERNAL, KPT_E_INTERNAL},
        /* Elements of arrays. */
        {"kpt_filter", KPT_FILTER_V1_SIZE, sizeof(kpt_filter), true,
         [](W &, void *whole) {
             *as<kpt_filter>(whole) = {KPT_FILTER_EXCLUDE, KPT_MATCH_MODULE, kpt_str_of("m")};
         },
         [](W &w, void *peer, uint32_t stride) {
             kpt_tracer_args args;
             KPT_INIT(&args);
             args.filters = as<kpt_filter>(peer);
             args.filter_count = 1;
             args.filter_stride = stride;
             return w.try_make(&args);
         },
         nullptr, of_plugin, "filters", KPT_E_SIZE, KPT_E_INVALID},
        {"kpt_watch", KPT_WATCH_V1_SIZE, sizeof(kpt_watch), true,
         [](W &w, void *whole) {
             *as<kpt_watch>(whole) = {7, &w};
         },
         [](W &w, void *peer, uint32_t stride) {
             kpt_tracer_args args;
             KPT_INIT(&args);
             args.watches = as<kpt_watch>(peer);
             args.watch_count = 1;
             args.watch_stride = stride;
             return w.try_make(&args);
         },
         nullptr, of_plugin, "watches", KPT_E_SIZE, KPT_E_INVALID},
    };
    return rows;
}

} // namespace

std::ostream &operator<<(std::ostream &out, const row &r)
{
    return out << r.name;
}

const std::vector<row> &struct_rows()
{
    static const std::vector<row> rows = make_rows();
    return rows;
}
