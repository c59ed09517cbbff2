/* kernel_stacks.h: finds the Python calls from which each kernel, memory copy and memory set in torch's trace
 * was launched. No extra data is recorded for it: the launch is the CUDA call with the same correlation, and
 * the stack is the set of calls that the recording has open on that thread at that time. No GIL. */
#ifndef KPTI_TORCH_KERNEL_STACKS_H
#define KPTI_TORCH_KERNEL_STACKS_H

#include "hosts/torch/session/exporter_view.h"
#include "writers/gpu/gpu_log.h"
#include "writers/kineto/kineto_splice.h"

typedef struct kpti_kernel_stacks {
    kpti_kineto_gpu gpu;
    kpti_fragments texts; /* by a launch's stack: members of a JSON object */
    int found;            /* 1 if there are any */
} kpti_kernel_stacks;

/* Finds the stacks of the trace FILE. There are none if an error occurs, or if it is not a trace of a GPU.
 * STACKS is initialised with zeroes, and the caller frees it. */
void kpti_kernel_stacks_find(kpti_kernel_stacks *stacks, const kpti_torch_recording *recording,
                             const kpti_kineto_file *file);

/* The same for the calls of LOG. */
void kpti_kernel_stacks_find_in_log(kpti_kernel_stacks *stacks,
                                    const kpti_torch_recording *recording, const kpti_gpu_log *log);

/* Returns the text for the work of a call, or an empty text. */
kpti_fragment kpti_kernel_stacks_text(const kpti_kernel_stacks *stacks, uint64_t correlation);

void kpti_kernel_stacks_free(kpti_kernel_stacks *stacks);

#endif
