/* exporter.h: a recording's calls into a file: into the trace that torch has written, or as a list of
 * their own. Plain C; no Python, no GIL. A file appears whole, or what was there stays. */
#ifndef KPTI_TORCH_EXPORTER_H
#define KPTI_TORCH_EXPORTER_H

#include "hosts/torch/exporter/torch_calls.h"

enum { /* beside KPTI_CALLS_* */
       KPTI_EXPORT_GZIP = 1 << 16,
       KPTI_EXPORT_STACKS = 1 << 17 /* of kernels */
};

typedef struct kpti_export_result {
    uint64_t calls;
    int os_error;   /* an errno; 0 with a status that is not KPT_OK: it is not a file's failure */
    int of_target;  /* which file it is about */
    char text[384]; /* of a failure; empty: the system's */
} kpti_export_result;

/* Writes the trace of Kineto at SOURCE to TARGET, which may be the same, with the calls of RECORDING,
 * which may be NULL. Stacks of kernels are put in where they can be: where not, the file has the rest. */
kpt_status kpti_export_trace(const kpti_torch_recording *recording, const char *source,
                             const char *target, uint32_t flags, kpti_export_result *result);

/* Writes the calls of RECORDING to TARGET as a JSON list, with times since BASE_NS. */
kpt_status kpti_export_list(const kpti_torch_recording *recording, const char *target,
                            int64_t base_ns, uint32_t flags, kpti_export_result *result);

#endif
