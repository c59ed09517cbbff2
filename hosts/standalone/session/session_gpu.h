/* session_gpu.h: what GPUs do while a session runs: the plugin's tracer of them, with an object that gathers the
 * Python stacks of launches, and the log that it is collected into. Where nothing can be recorded a text
 * says why, and the session goes on. One thread at a time: who calls has the session's control. */
#ifndef KPTI_HOSTS_STANDALONE_SESSION_SESSION_GPU_H
#define KPTI_HOSTS_STANDALONE_SESSION_SESSION_GPU_H

#include "abi/kpt_gpu.h"
#include "hosts/standalone/plugin_client.h"
#include "writers/gpu/gpu_log.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is wanted. */
enum {
    KPTI_GPU_AUTO = 0, /* where there is a GPU; if not, not a word */
    KPTI_GPU_ON = 1,
    KPTI_GPU_OFF = 2
};

/* Begins as zeroes. */
typedef struct kpti_gpu {
    kpt_tracebacks tracebacks; /* ops NULL: stacks can't be gathered */
    kpt_gpu_tracer tracer;     /* ops NULL: nothing is recorded */
    int stopped;
    kpti_gpu_log log;
    kpti_u64_map stacks; /* by the number of a traceback: one more than its node */
    char reason[256];    /* why nothing is, or was, recorded; empty: it is, or nobody asked */
} kpti_gpu;

/* Makes the tracer and has it run. */
void kpti_gpu_start(kpti_gpu *gpu, const kpti_door *door, uint32_t wanted, int is_ring);

/* Takes what is finished into the log. */
void kpti_gpu_collect(kpti_gpu *gpu);

/* Ends recording, waits for what the GPU has begun, and collects it. Without the GIL. */
void kpti_gpu_stop(kpti_gpu *gpu);

void kpti_gpu_free(kpti_gpu *gpu);

#ifdef __cplusplus
}
#endif
#endif
