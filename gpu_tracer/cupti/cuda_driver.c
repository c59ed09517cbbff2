#include "gpu_tracer/cupti/cuda_driver.h"

#include <cuda.h>
#include <dlfcn.h>
#include <unistd.h>

/* Returns a function of the library if the library is loaded; never loads it. The library is never
 * unloaded, so the function stays valid. */
static void *function(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    void *found = library ? dlsym(library, name) : NULL;
    if (library) (void)dlclose(library);
    return found;
}

/* Checks for the device nodes that the driver creates on a PC or a server, in WSL, and on Tegra. */
static int has_driver(void)
{
    static const char *const nodes[] = {"/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-ctrl"};
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++)
        if (access(nodes[i], F_OK) == 0) return 1;
    return 0;
}

kpti_cuda_state kpti_cuda_look(void)
{
    CUresult (*get_current)(CUcontext * context);
    CUresult (*get_count)(int *count);
    CUcontext context;
    int count = 0;
    *(void **)&get_current = function("cuCtxGetCurrent");
    *(void **)&get_count = function("cuDeviceGetCount");
    if (!get_current || !get_count) return has_driver() ? KPTI_CUDA_UNUSED : KPTI_CUDA_ABSENT;
    switch (get_current(&context)) {
    case CUDA_ERROR_NOT_INITIALIZED:
        return KPTI_CUDA_UNUSED;
    case CUDA_ERROR_DEINITIALIZED:
        return KPTI_CUDA_NO_GPU;
    default:
        break;
    }
    return get_count(&count) == CUDA_SUCCESS && count > 0 ? KPTI_CUDA_READY : KPTI_CUDA_NO_GPU;
}

void *kpti_cuda_current(void)
{
    CUresult (*get_current)(CUcontext * context);
    CUcontext context = NULL;
    *(void **)&get_current = function("cuCtxGetCurrent");
    return get_current && get_current(&context) == CUDA_SUCCESS ? context : NULL;
}

void kpti_cuda_wait(void *context)
{
    CUresult (*push)(CUcontext context);
    CUresult (*pop)(CUcontext * context);
    CUresult (*synchronize)(void);
    CUcontext popped;
    *(void **)&push = function("cuCtxPushCurrent_v2");
    *(void **)&pop = function("cuCtxPopCurrent_v2");
    *(void **)&synchronize = function("cuCtxSynchronize");
    if (!push || !pop || !synchronize || push(context) != CUDA_SUCCESS) return;
    (void)synchronize();
    (void)pop(&popped);
}

static uint32_t attribute(CUdevice device, CUdevice_attribute which)
{
    CUresult (*get)(int *value, CUdevice_attribute attribute, CUdevice device);
    int value = 0;
    *(void **)&get = function("cuDeviceGetAttribute");
    return get && get(&value, which, device) == CUDA_SUCCESS && value > 0 ? (uint32_t)value : 0;
}

static void describe(int index, CUdevice device, kpt_gpu_device *out, char name[KPTI_CUDA_NAME])
{
    CUresult (*get_name)(char *capacity, int size, CUdevice device);
    CUresult (*get_memory)(size_t * bytes, CUdevice device);
    size_t bytes = 0;
    *(void **)&get_name = function("cuDeviceGetName");
    *(void **)&get_memory = function("cuDeviceTotalMem_v2");
    name[0] = 0;
    if (get_name) (void)get_name(name, KPTI_CUDA_NAME, device);
    name[KPTI_CUDA_NAME - 1] = 0;
    if (get_memory) (void)get_memory(&bytes, device);
    *out = (kpt_gpu_device){
        .index = (uint32_t)index,
        .multiprocessors = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        .name = kpt_str_of(name),
        .memory_bytes = bytes,
        .compute_major = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
        .compute_minor = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        .warp_size = attribute(device, CU_DEVICE_ATTRIBUTE_WARP_SIZE),
        .max_threads_per_block = attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        .max_threads_per_multiprocessor =
            attribute(device, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
        .registers_per_multiprocessor =
            attribute(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR),
        .shared_bytes_per_multiprocessor =
            attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
        .clock_khz = attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
    };
}

uint32_t kpti_cuda_devices(kpt_gpu_device *out, char (*names)[KPTI_CUDA_NAME])
{
    CUresult (*get_count)(int *count);
    CUresult (*get)(CUdevice * device, int index);
    CUdevice device;
    int count = 0;
    uint32_t found = 0;
    *(void **)&get_count = function("cuDeviceGetCount");
    *(void **)&get = function("cuDeviceGet");
    if (!get_count || !get || get_count(&count) != CUDA_SUCCESS) return 0;
    for (int i = 0; i < count && i < KPTI_CUDA_MAX_DEVICES; i++) {
        if (get(&device, i) != CUDA_SUCCESS) continue;
        describe(i, device, &out[found], names[found]);
        found++;
    }
    return found;
}
