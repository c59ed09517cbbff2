/* gpu_launches.h: the calls of a GPU log that start work, by thread and time, with the GPU time of that work. A walk
 * over the operators of the same recording (operator_walk.h) adds to each launch what was around it.
 *
 *   make ──> a walk fills in forward, is_backward and range ──> claim, of ──> free
 *
 * Takes 64 bytes and a row of a map for each call. One thread at a time. */
#ifndef KPTI_WRITERS_GPU_GPU_LAUNCHES_H
#define KPTI_WRITERS_GPU_GPU_LAUNCHES_H

#include "writers/gpu/gpu_log.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_gpu_launch {
    uint64_t os_tid;
    int64_t start_ns; /* of the call, without the log's clock shift */
    uint64_t correlation;
    uint64_t work_ns; /* sum of the work that the call started */
    uint64_t
        external; /* id that the file gives to the innermost operator around it; 0: none, or not written yet */
    /* Of backward work: the Python function of the forward operator. Empty: it is not known. The tracer owns it. */
    kpt_str forward;
    uint32_t is_backward;
    uint32_t range; /* the innermost range around it: index + 1; 0: none */
} kpti_gpu_launch;

/* A range in which launches are. */
typedef struct kpti_gpu_range {
    char *name; /* not terminated */
    uint32_t name_size;
    uint32_t outer; /* the range around it: index + 1; 0: none */
    int64_t start_ns;
    uint32_t thread;   /* index of a kpt_thread */
    uint64_t external; /* id that the file gives to it; 0: none */
} kpti_gpu_range;

/* Zeroed at first, except for heap. */
typedef struct kpti_gpu_launches {
    kpti_heap heap;
    kpti_gpu_launch *items; /* sorted by os_tid and start_ns */
    uint32_t capacity;
    uint32_t count;
    kpti_u64_map number_of; /* by correlation: index + 1 */
    kpti_gpu_range *ranges;
    uint32_t range_capacity;
    uint32_t range_count;
} kpti_gpu_launches;

/* Returns KPT_OK, KPT_E_MEMORY or KPT_E_LIMIT. The caller must call kpti_gpu_launches_free in any case. */
kpt_status kpti_gpu_launches_make(kpti_gpu_launches *launches, const kpti_gpu_log *log);
void kpti_gpu_launches_free(kpti_gpu_launches *launches);

/* Returns the first launch of a thread, and sets *END behind its last one. Returns *END if there is none. */
kpti_gpu_launch *kpti_gpu_launches_of_thread(const kpti_gpu_launches *launches, uint64_t os_tid,
                                             kpti_gpu_launch **end);

/* Returns the launch of EVENT, a call or some work, or NULL. */
kpti_gpu_launch *kpti_gpu_launch_of(kpti_gpu_launches *launches, const kpt_gpu_event *event);

/* Adds a range with a copy of NAME. Sets *NUMBER to its index + 1. Returns KPT_OK, KPT_E_MEMORY or KPT_E_LIMIT. */
kpt_status kpti_gpu_launches_add_range(kpti_gpu_launches *launches, kpt_str name, uint32_t outer,
                                       uint32_t *number);

/* Converts the times of calls, for claim. */
void kpti_gpu_launches_shift(kpti_gpu_launches *launches, const kpti_clock_shift *shift);

/* Gives the launches of a thread from START_NS to END_NS the id EXTERNAL, unless they have one. An operator must be
 * passed before the operator around it. Returns the number of launches that got the id. */
uint32_t kpti_gpu_launches_claim(const kpti_gpu_launches *launches, uint64_t os_tid,
                                 int64_t start_ns, int64_t end_ns, uint64_t external);
/* The same for operators that are passed after those around them: launches get the id of the last one. */
void kpti_gpu_launches_claim_inner(const kpti_gpu_launches *launches, uint64_t os_tid,
                                   int64_t start_ns, int64_t end_ns, uint64_t external);

#ifdef __cplusplus
}
#endif
#endif
