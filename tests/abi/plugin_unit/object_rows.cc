/* object_rows.cc: the structs of tracebacks, memory tracers, observers and GPU tracers, and the calls that
 * take them. */
#include "tests/abi/plugin_unit/struct_rows.h"

namespace
{

std::string of_tracebacks(const struct_world &w)
{
    return w.tracebacks_text();
}
std::string of_gpu(const struct_world &w)
{
    return w.gpu_text();
}

kpt_status make_tracebacks(struct_world &w, const kpt_tracebacks_args *args, kpt_tracebacks *out)
{
    return w.table<kpt_traceback_maker>(KPT_EXT_TRACEBACK).make(w.info.self, args, out);
}

kpt_status make_gpu(struct_world &w, const kpt_gpu_args *args, kpt_gpu_tracer *out)
{
    return w.table<kpt_gpu_maker>(KPT_EXT_GPU).make(w.info.self, args, out);
}

kpt_status extension(struct_world &w, const char *name, void *out)
{
    return w.tracer.ops->get_extension(w.tracer.self, kpt_str_of(name), out);
}

} // namespace

std::vector<row> object_rows()
{
    using W = struct_world;
    return {
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
        {SIZED("kpt_gpu_maker", kpt_gpu_maker, GPU_MAKER), empty<kpt_gpu_maker>,
         [](W &w, void *peer, uint32_t) {
             return w.info.get_extension(w.info.self, kpt_str_of(KPT_EXT_GPU), peer);
         },
         [](const void *peer) { return copy_of<kpt_gpu_maker>(peer).make != nullptr; }, of_plugin,
         "out", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_gpu_args", kpt_gpu_args, GPU_ARGS), empty<kpt_gpu_args>,
         [](W &w, void *peer, uint32_t) {
             kpt_gpu_tracer made;
             KPT_INIT(&made);
             kpt_status status = make_gpu(w, as<kpt_gpu_args>(peer), &made);
             return destroy_after<kpt_gpu_tracer>(status, &made);
         },
         nullptr, of_plugin, "args", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_gpu_tracer", kpt_gpu_tracer, GPU_TRACER), empty<kpt_gpu_tracer>,
         [](W &w, void *peer, uint32_t) {
             kpt_gpu_args args;
             KPT_INIT(&args);
             kpt_status status = make_gpu(w, &args, as<kpt_gpu_tracer>(peer));
             return destroy_after<kpt_gpu_tracer>(status, peer);
         },
         [](const void *peer) { /* with a GPU it is not a no-op */
                                auto made = copy_of<kpt_gpu_tracer>(peer);
                                return made.ops && made.self;
         },
         of_plugin, "out", KPT_E_SIZE, KPT_E_INVALID},
        {SIZED("kpt_gpu_stats", kpt_gpu_stats, GPU_STATS), empty<kpt_gpu_stats>,
         [](W &w, void *peer, uint32_t) {
             return w.gpu.ops->get_stats(w.gpu.self, as<kpt_gpu_stats>(peer));
         },
         [](const void *peer) {
             auto stats = copy_of<kpt_gpu_stats>(peer);
             return stats.events == 0 && stats.bytes_held == 0;
         },
         of_gpu, "get_stats", KPT_E_SIZE, KPT_E_INVALID},
    };
}
