/* cupti_conflicts.c: see cupti_conflicts.h. It identifies the tool by the loaded libraries. */
#include "gpu_tracer/cupti/cupti_conflicts.h"

#include <link.h>
#include <stdlib.h>
#include <string.h>

static const struct rival {
    const char *library; /* a part of its path */
    const char *name;
} rivals[] = {
    {"libToolsInjection", "Nsight Systems"},
    {"nsight-systems", "Nsight Systems"},
    {"nsight-compute", "Nsight Compute"},
    {"libcuda-injection", "Nsight Compute"},
    {"libsanitizer-collection", "compute-sanitizer"},
    {"libkineto", "Kineto (torch.profiler)"},
    {"libtorch_cpu", "Kineto (torch.profiler)"},
    {"xla_extension", "XLA's profiler (jax)"},
};
enum { RIVALS = sizeof rivals / sizeof rivals[0] };

static int look(struct dl_phdr_info *info, size_t size, void *ctx)
{
    int *best = ctx; /* lowest index in the table */
    (void)size;
    for (int i = 0; i < *best; i++)
        if (info->dlpi_name && strstr(info->dlpi_name, rivals[i].library)) *best = i;
    return 0;
}

const char *kpti_rival(void)
{
    int best = RIVALS;
    (void)dl_iterate_phdr(look, &best);
    if (best < RIVALS) return rivals[best].name;
    return getenv("NSYS_PROFILING_SESSION_ID") ? "Nsight Systems" : "another tool";
}
