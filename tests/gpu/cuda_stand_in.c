/* cuda_stand_in.c: a CUDA driver that only says whether it is initialised, and what devices it has. */
#include <cuda.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/gpu/stand_in.h"

#define SHOWN __attribute__((visibility("default")))

static atomic_int initialised;
static atomic_int devices;
static atomic_int waits;

#define DECLARE(name, ...)            \
    SHOWN CUresult name(__VA_ARGS__); \
    CUresult name(__VA_ARGS__)
#undef cuCtxPushCurrent
#undef cuCtxPopCurrent
#undef cuDeviceTotalMem

DECLARE(cuCtxGetCurrent, CUcontext *context)
{
    *context = NULL;
    return initialised ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

DECLARE(cuDeviceGetCount, int *count)
{
    *count = devices;
    return initialised ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
}

DECLARE(cuDeviceGet, CUdevice *device, int ordinal)
{
    *device = ordinal;
    return CUDA_SUCCESS;
}

DECLARE(cuDeviceGetName, char *name, int size, CUdevice device)
{
    (void)snprintf(name, (size_t)size, "Stand-in %d", device);
    return CUDA_SUCCESS;
}

DECLARE(cuDeviceTotalMem_v2, size_t *bytes, CUdevice device)
{
    *bytes = (size_t)8 << 30;
    (void)device;
    return CUDA_SUCCESS;
}

DECLARE(cuDeviceGetAttribute, int *value, CUdevice_attribute attribute, CUdevice device)
{
    *value = attribute == CU_DEVICE_ATTRIBUTE_WARP_SIZE ? 32 : 9;
    (void)device;
    return CUDA_SUCCESS;
}

DECLARE(cuCtxPushCurrent_v2, CUcontext context)
{
    return context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

DECLARE(cuCtxPopCurrent_v2, CUcontext *context)
{
    *context = NULL;
    return CUDA_SUCCESS;
}

DECLARE(cuCtxSynchronize, void)
{
    waits++;
    return CUDA_SUCCESS;
}

static void reset(int is, int count)
{
    initialised = is;
    devices = count;
    waits = 0;
}

/* As the driver does it. */
static int init(void)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    int (*begin)(void) = NULL;
    void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    int answer;
    if (library) *(void **)&begin = dlsym(library, "InitializeInjection");
    answer = begin ? begin() : -1;
    initialised = 1;
    return answer;
}

static int count_waits(void)
{
    return waits;
}

extern SHOWN const play_cuda play_cuda_table;
const play_cuda play_cuda_table = {reset, init, count_waits};
