/* kernel_stacks.h: which Python calls each kernel, copy and set of memory in torch's trace was launched
 * from. Nothing is recorded for that: the launch is the call of CUDA with the same correlation, and the
 * stack is what the recording has open on that thread at that time. No GIL. */
#ifndef KPTI_TORCH_KERNEL_STACKS_H
#define KPTI_TORCH_KERNEL_STACKS_H

#include "hosts/torch/profiler/exporter_view.h"
#include "writers/kineto/kineto_splice.h"

typedef struct kpti_kernel_stacks {
    kpti_kineto_gpu gpu;
    kpti_fragments texts; /* by a launch's stack: members of an object */
    int found;            /* there are some */
} kpti_kernel_stacks;

/* Finds those of the trace FILE. Whatever fails, or is no trace of a GPU, has none. STACKS begins as zeroes
 * and is to be freed. */
void kpti_kernel_stacks_find(kpti_kernel_stacks *stacks, const kpti_torch_recording *recording,
                             const kpti_kineto_file *file);

void kpti_kernel_stacks_free(kpti_kernel_stacks *stacks);

#endif
