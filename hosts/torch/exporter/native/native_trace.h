/* native_trace.h: writes the recording of a native profile as the file that Kineto writes for the same program:
 * operators, annotations and Python calls in the order of their begin, then arrows and what GPUs did. Plain C; no
 * Python, no GIL. The file appears complete, or the previous file stays; the recording is not changed. Memory grows
 * with the number of operators that autograd has recorded, with functions and with launches, but not with calls. */
#ifndef KPTI_TORCH_NATIVE_TRACE_H
#define KPTI_TORCH_NATIVE_TRACE_H

#include "hosts/torch/exporter/exporter.h"
#include "writers/gpu/gpu_log.h"

typedef struct kpti_native_trace {
    const kpti_torch_recording *recording;
    const kpti_gpu_log *gpu; /* NULL: no GPU was recorded */
    kpt_str members;         /* of the file's head: valid JSON, a comma behind each */
    kpt_str name;            /* "traceName"; empty: the path */
    int64_t begin_ns;        /* of the profile */
    int64_t base_ns;         /* of the file's times */
    kpti_interrupted_fn interrupted; /* see output_file.h */
    void *interrupted_ctx;
} kpti_native_trace;

/* Writes TRACE to TARGET. FLAGS are KPTI_EXPORT_*. */
kpt_status kpti_native_write(const kpti_native_trace *trace, const char *target, uint32_t flags,
                             kpti_export_result *result);

#endif
