/* cuda_injection.c: see cuda_injection.h. At cuInit the driver loads the library in CUDA_INJECTION64_PATH
 * and calls its InitializeInjection, so we need not initialise CUDA. NVTX has its own variable, and calls
 * CUPTI itself. Both variables are set only while we record. */
#include "gpu_tracer/cupti/cuda_injection.h"

#include <dlfcn.h>
#include <limits.h>

#include "gpu_tracer/cupti/cupti_find.h"

#define CUDA_VARIABLE "CUDA_INJECTION64_PATH"
#define NVTX_VARIABLE "NVTX_INJECTION64_PATH"

static int cuda_set;
static int nvtx_set;
static const char here;

/* Returns the path of this library. */
static const char *own_path(char capacity[PATH_MAX])
{
    Dl_info info;
    if (!dladdr(&here, &info) || !info.dli_fname) return NULL;
    return realpath(info.dli_fname, capacity);
}

kpt_status kpti_injection_set(kpti_error *error)
{
    char own[PATH_MAX];
    char cupti[PATH_MAX];
    const char *path = own_path(own);
    const char *set = getenv(CUDA_VARIABLE);
    if (!path)
        return kpti_fail(
            error, KPT_E_UNSUPPORTED,
            "cannot determine the path of libkpytrace_gpu.so (dladdr or realpath failed)");
    if (set && set[0] && strcmp(set, path) != 0)
        return kpti_fail(error, KPT_E_BUSY,
                         "CUPTI is reserved for another tool: " CUDA_VARIABLE
                         " is %.120s; unset it to record GPU activities",
                         set);
    cuda_set = setenv(CUDA_VARIABLE, path, 1) == 0;
    if (!cuda_set) return kpti_fail(error, KPT_E_MEMORY, "no memory for " CUDA_VARIABLE);
    kpti_injection_nvtx(kpti_cupti_likely_path(cupti, sizeof cupti));
    return KPT_OK;
}

/* A value that we set may be replaced: the program's libraries may have loaded another CUPTI than expected. */
void kpti_injection_nvtx(const char *cupti_path)
{
    if (!cupti_path || (getenv(NVTX_VARIABLE) && !nvtx_set)) return;
    nvtx_set = setenv(NVTX_VARIABLE, cupti_path, 1) == 0;
}

void kpti_injection_clear(void)
{
    if (cuda_set) (void)unsetenv(CUDA_VARIABLE);
    if (nvtx_set) (void)unsetenv(NVTX_VARIABLE);
    cuda_set = nvtx_set = 0;
}
