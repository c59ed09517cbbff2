#include "hosts/torch/memory/cuda_loader.h"

#include <dlfcn.h>

#include <mutex>

#include "hosts/torch/memory/cuda/cuda_allocator.h"
#include "hosts/torch/memory/tensor_reports.h"

namespace kpytrace
{
namespace tensors
{

void report_cuda(const CudaBlock *block)
{
    constexpr int32_t CUDA = 1;
    report(block->is_freed ? KPT_REPORT_FREE : KPT_REPORT_ALLOC,
           {CUDA, block->device, block->stream}, block->address, block->size);
}

} // namespace tensors

std::string attach_cuda(const char *library)
{
    static std::mutex lock;
    static bool is_attached = false;
    std::lock_guard<std::mutex> guard(lock);
    if (is_attached) return "";
    void *loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!loaded) return dlerror();
    auto attach = reinterpret_cast<CudaAttachFn>(dlsym(loaded, CUDA_ATTACH));
    char why[256] = "";
    is_attached = attach && attach(tensors::report_cuda, why, sizeof why);
    return is_attached ? ""
           : attach    ? why
                       : std::string("the library does not export ") + CUDA_ATTACH;
}

} // namespace kpytrace
