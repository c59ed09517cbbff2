/* native_trace.h: writes the recording of a native profile as the file that Kineto writes for the same program:
 * operators, annotations and Python calls in the order of their begin, then arrows and what GPUs did. Plain C; no
 * Python, no GIL. The file appears complete, or the previous file stays; the recording is not changed. Memory grows
 * with the number of operators that autograd has recorded, with functions and with launches, but not with calls. */
#ifndef KPTI_TORCH_NATIVE_TRACE_H
#define KPTI_TORCH_NATIVE_TRACE_H

#include "hosts/torch/exporter/exporter.h"
#include "hosts/torch/exporter/native_profile.h"

/* Writes PROFILE to TARGET. FLAGS are KPTI_EXPORT_*. */
kpt_status kpti_native_write(const kpti_native_profile *profile, const char *target, uint32_t flags,
                             kpti_export_result *result);

#endif
