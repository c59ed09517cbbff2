/* struct_world.cc: a host bound to libkpytrace.so, with one object of each kind; nothing leaks in the end. */
#include "tests/abi/plugin_unit/struct_world.h"

#include <cstdlib>

namespace
{

std::string text_of(kpt_last_error_fn last_error, kpt_handle self)
{
    char buf[256] = "";
    EXPECT_EQ(last_error(self, buf, sizeof buf, nullptr), KPT_OK);
    return buf;
}

} // namespace

struct_world::struct_world()
{
    const char *why = "";
    kpt_tracer_args tracer_args;
    kpt_memory_args memory_args;
    kpt_observer_args observer_args;
    kpt_tracebacks_args tracebacks_args;
    kpt_gpu_args gpu_args;
    mock_host_init(&host, "sizes");
    entry = mock_open_plugin(KPT_PLUGIN_PATH, &why);
    if (!entry) {
        ADD_FAILURE() << why;
        std::abort();
    }
    KPT_INIT(&info);
    KPT_INIT(&tracer);
    KPT_INIT(&memory);
    KPT_INIT(&observer);
    KPT_INIT(&tracebacks);
    KPT_INIT(&gpu);
    KPT_INIT(&tracer_args);
    KPT_INIT(&memory_args);
    KPT_INIT(&observer_args);
    KPT_INIT(&tracebacks_args);
    KPT_INIT(&gpu_args);
    EXPECT_EQ(entry(&host.table, &info), KPT_OK);
    EXPECT_EQ(host.make_tracer(host.tracer_ctx, &tracer_args, &tracer), KPT_OK);
    EXPECT_EQ(host.make_memory(host.memory_ctx, &memory_args, &memory), KPT_OK);
    EXPECT_EQ(host.make_observer(host.observer_ctx, &observer_args, &observer), KPT_OK);
    const auto maker = table<kpt_traceback_maker>(KPT_EXT_TRACEBACK);
    EXPECT_EQ(maker.make(info.self, &tracebacks_args, &tracebacks), KPT_OK);
    const auto gpu_maker = table<kpt_gpu_maker>(KPT_EXT_GPU);
    EXPECT_EQ(gpu_maker.make(info.self, &gpu_args, &gpu), KPT_OK);
}

struct_world::~struct_world()
{
    EXPECT_EQ(tracer.ops->destroy(tracer.self), KPT_OK);
    EXPECT_EQ(memory.ops->destroy(memory.self), KPT_OK);
    EXPECT_EQ(observer.ops->destroy(observer.self), KPT_OK);
    EXPECT_EQ(tracebacks.ops->destroy(tracebacks.self), KPT_OK);
    EXPECT_EQ(gpu.ops->destroy(gpu.self), KPT_OK);
    EXPECT_EQ(info.detach(info.self), KPT_OK) << "something that the test made is still alive";
    EXPECT_EQ(host.live_blocks, 0U);
    EXPECT_EQ(host.bad_frees, 0U);
}

kpt_status struct_world::try_make(const kpt_tracer_args *args)
{
    kpt_tracer made;
    KPT_INIT(&made);
    kpt_status status = host.make_tracer(host.tracer_ctx, args, &made);
    if (status == KPT_OK) {
        EXPECT_EQ(made.ops->destroy(made.self), KPT_OK);
    }
    return status;
}

std::string struct_world::plugin_text() const
{
    return text_of(info.last_error, info.self);
}

std::string struct_world::process_text() const
{
    return text_of(info.last_error, 0);
}

std::string struct_world::tracer_text() const
{
    return text_of(tracer.ops->last_error, tracer.self);
}

std::string struct_world::tracebacks_text() const
{
    return text_of(tracebacks.ops->last_error, tracebacks.self);
}

std::string struct_world::gpu_text() const
{
    return text_of(gpu.ops->last_error, gpu.self);
}
