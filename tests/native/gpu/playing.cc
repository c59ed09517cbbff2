#include "tests/native/gpu/playing.h"

#include <dlfcn.h>

#include <cstdlib>

const void *open_stand_in(const char *path, const char *table)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return library ? dlsym(library, table) : nullptr;
}

Playing::Playing()
{
    const char *path = getenv("KPT_STAND_IN") ? getenv("KPT_STAND_IN") : KPT_STAND_IN_13;
    setenv("KPYTRACE_CUPTI", path, 1);
    cupti = static_cast<const play_cupti *>(open_stand_in(path, PLAY_CUPTI));
    cuda = static_cast<const play_cuda *>(open_stand_in(KPT_STAND_IN_CUDA, PLAY_CUDA));
    cupti->reset();
    cuda->reset(1, 2);
    set_python_line(0);
}

Playing::~Playing()
{
    if (tracer.self) {
        EXPECT_EQ(destroy(), KPT_OK);
    }
    EXPECT_EQ(tracebacks_out(), 0);
    EXPECT_EQ(cupti->subscribed(), 0);
    EXPECT_EQ(cupti->enabled_kinds(), 0u);
    EXPECT_EQ(cupti->buffers_out(), 0);
    EXPECT_EQ(getenv("CUDA_INJECTION64_PATH"), nullptr);
    EXPECT_EQ(getenv("NVTX_INJECTION64_PATH"), nullptr);
}

void Playing::begin()
{
    ASSERT_EQ(make(), KPT_OK);
    ASSERT_EQ(tracer.flags, 0u) << error();
    ASSERT_EQ(start(), KPT_OK) << error();
}

void Playing::finish()
{
    ASSERT_EQ(stop(), KPT_OK) << error();
    ASSERT_EQ(collect(), KPT_OK) << error();
}

uint32_t Playing::launch(const char *kernel, uint32_t stream)
{
    play_call call = {};
    call.runtime = "cudaLaunchKernel";
    call.driver = "cuLaunchKernel";
    call.kernel = kernel;
    call.stream = stream;
    call.context = this;
    return cupti->call(&call);
}
