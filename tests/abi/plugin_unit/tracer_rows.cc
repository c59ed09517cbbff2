/* tracer_rows.cc: the structs of the plugin's entry, of tracers and of recordings, and the calls that take
 * them. */
#include "tests/abi/plugin_unit/struct_rows.h"

namespace
{

template <typename Given> kpt_status take(void *, const Given *)
{
    return KPT_OK;
}

kpt_status detach_after(kpt_status status, const void *peer)
{
    if (status == KPT_OK) {
        auto info = copy_of<kpt_plugin_info>(peer);
        EXPECT_EQ(info.detach(info.self), KPT_OK);
    }
    return status;
}

std::string of_process(const struct_world &w)
{
    return w.process_text();
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

} // namespace

std::vector<row> tracer_rows()
{
    using W = struct_world;
    return {
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
}
