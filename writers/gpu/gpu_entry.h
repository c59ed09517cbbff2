/* gpu_entry.h: one event of a GPU log, unpacked: gpu_codec.h packs it, and gpu_log.h stores it. */
#ifndef KPTI_WRITERS_GPU_GPU_ENTRY_H
#define KPTI_WRITERS_GPU_GPU_ENTRY_H

#include "abi/kpt_gpu.h"

/* event.name is borrowed from the log; event.python is empty. */
typedef struct kpti_gpu_entry {
    kpt_gpu_event event;
    uint32_t text;  /* number of its name */
    uint32_t stack; /* the node of the innermost frame */
} kpti_gpu_entry;

#endif
