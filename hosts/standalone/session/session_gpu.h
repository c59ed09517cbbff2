/* session_gpu.h: the GPU activity of a session: the plugin's GPU tracer, a gatherer for the Python stacks of
 * launches, and the log that receives the activity. If nothing can be recorded, `reason` has the cause and the
 * session continues. One thread at a time: the caller holds the session's control. */
#ifndef KPTI_HOSTS_STANDALONE_SESSION_SESSION_GPU_H
#define KPTI_HOSTS_STANDALONE_SESSION_SESSION_GPU_H

#include "abi/kpt_gpu.h"
#include "hosts/standalone/plugin_client.h"
#include "writers/gpu/gpu_log.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The user's choice. */
enum {
    KPTI_GPU_AUTO = 0, /* record if there is a GPU; no message if there is none */
    KPTI_GPU_ON = 1,
    KPTI_GPU_OFF = 2,
    KPTI_GPU_CALLS = 3 /* ON, with nearly every call of CUDA, waits and overhead */
};

/* Initialised with zeroes. */
typedef struct kpti_gpu {
    kpt_tracebacks tracebacks; /* ops is NULL if stacks can't be gathered */
    kpt_gpu_tracer tracer;     /* ops is NULL if nothing is recorded */
    uint32_t recorded;         /* KPTI_GPU_ON or KPTI_GPU_CALLS; undefined if ops is NULL */
    int stopped;
    kpti_gpu_log log;
    kpti_u64_map stacks; /* from the number of a traceback to its node + 1 */
    char reason[256];    /* why nothing is recorded; empty if it is, or was not requested */
} kpti_gpu;

/* Makes the GPU tracer and starts it. */
void kpti_gpu_start(kpti_gpu *gpu, const kpti_plugin_client *client, uint32_t wanted, int is_ring);

/* Moves finished activity into the log. */
void kpti_gpu_collect(kpti_gpu *gpu);

/* Ends recording, waits for work that the GPU has begun, and collects it. Call it without the GIL. */
void kpti_gpu_stop(kpti_gpu *gpu);

void kpti_gpu_free(kpti_gpu *gpu);

#ifdef __cplusplus
}
#endif
#endif
