/* exporter.h: writes a recording's calls to a file: into the trace that torch has written, or as a list of
 * their own. Plain C; no Python, no GIL. A file appears complete, or the previous file stays. */
#ifndef KPTI_TORCH_EXPORTER_H
#define KPTI_TORCH_EXPORTER_H

#include "hosts/torch/exporter/torch_calls.h"

enum { /* combined with KPTI_CALLS_* */
       KPTI_EXPORT_GZIP = 1 << 16,
       KPTI_EXPORT_STACKS = 1 << 17 /* of kernels */
};

typedef struct kpti_export_result {
    uint64_t calls;
    int os_error;   /* an errno; 0 if the failure is not that of a file */
    int of_target;  /* the failure is of TARGET, not of SOURCE */
    char text[384]; /* of a failure; if empty, the system's text applies */
} kpti_export_result;

/* Writes Kineto's trace at SOURCE to TARGET, which may be the same, with the calls of RECORDING, which may be
 * NULL. Stacks of kernels are added if possible; otherwise the file has everything else. */
kpt_status kpti_export_trace(const kpti_torch_recording *recording, const char *source,
                             const char *target, uint32_t flags, kpti_export_result *result);

/* Writes the calls of RECORDING to TARGET as a JSON list, with times since BASE_NS. */
kpt_status kpti_export_list(const kpti_torch_recording *recording, const char *target,
                            int64_t base_ns, uint32_t flags, kpti_export_result *result);

#endif
