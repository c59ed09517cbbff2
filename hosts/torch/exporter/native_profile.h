/* native_profile.h: what the file of a native profile is made of. All pointers are the caller's. */
#ifndef KPTI_TORCH_NATIVE_PROFILE_H
#define KPTI_TORCH_NATIVE_PROFILE_H

#include "hosts/torch/session/exporter_view.h"
#include "writers/gpu/gpu_log.h"
#include "writers/io/output_file.h"

typedef struct kpti_native_profile {
    const kpti_torch_recording *recording;
    const kpti_gpu_log *gpu;         /* NULL: no GPU was recorded */
    kpt_str members;                 /* of the file's head: valid JSON, a comma behind each */
    kpt_str name;                    /* "traceName"; empty: the path */
    int64_t begin_ns;                /* of the profile */
    int64_t base_ns;                 /* of the file's times */
    kpti_interrupted_fn interrupted; /* see output_file.h */
    void *interrupted_ctx;
} kpti_native_profile;

#endif
