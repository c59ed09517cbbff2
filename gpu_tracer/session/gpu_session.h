/* gpu_session.h: the state of one recording, from start to destroy. gpu_recording.h says which states it passes. */
#ifndef KPTI_GPU_TRACER_SESSION_GPU_SESSION_H
#define KPTI_GPU_TRACER_SESSION_GPU_SESSION_H

#include "gpu_tracer/cupti/cuda_driver.h"
#include "gpu_tracer/cupti/cupti_library.h"
#include "gpu_tracer/cupti/unix_clock.h"
#include "gpu_tracer/records/launches.h"
#include "gpu_tracer/records/record_store.h"

enum { KPTI_MOST_CONTEXTS = 64 };

/* What is known about a correlation id: the launch, and the external correlation. */
typedef struct kpti_gpu_known {
    kpti_launch launch; /* correlation 0: a free slot */
    uint64_t external;
    uint32_t turn; /* the table's when something of this correlation came last … */
    uint32_t made; /* … and the table's again */
} kpti_gpu_known;

typedef struct kpti_gpu_table {
    kpti_gpu_known *rows; /* by the correlation's hash; a power of two of them */
    uint64_t room;
    uint64_t count;
    uint32_t turn; /* how often it was filled … */
    uint32_t made; /* … with how many rows; both may wrap around */
    uint32_t seen; /* the turn in which rows were last forgotten, what waits having been seen … */
    uint32_t pressed;   /* … and in which they were for want of room */
    uint64_t forgotten; /* rows … */
    uint64_t early;     /* … of them, those that went, or never came, for want of room … */
    uint64_t awaited;   /* … and those whose kernels have still not come */
} kpti_gpu_table;

/* The stacks that were delivered: their numbers stay valid until destroy. */
typedef struct kpti_gpu_stacks {
    kpt_traceback *rows; /* by the number's hash; a power of two of them */
    uint64_t room;
    uint64_t count;
} kpti_gpu_stacks;

typedef struct kpti_gpu_session {
    const kpti_env *env;
    kpt_tracebacks tracebacks; /* ops NULL: no stacks */
    uint32_t depth;
    _Atomic uint32_t state; /* KPT_GPU_*; 0: not started */
    kpti_gpu_budget budget;
    kpti_gpu_store store;
    kpti_unix_clock clock;
    const kpti_cupti *cupti;
    CUpti_SubscriberHandle subscriber;
    _Atomic(void *) contexts[KPTI_MOST_CONTEXTS]; /* that were called in, and live */
    _Atomic uint32_t destroyed;                   /* contexts */
    _Atomic uint32_t captures;                    /* that are going on */
    _Atomic uint64_t unlisted;         /* launches without room in their threads' lists … */
    _Atomic uint64_t unlisted_kernels; /* … and those of kernels */
    uint64_t stop_time;                /* Unix time */
    kpt_status late_status;            /* why it did not begin with CUDA … */
    kpti_error late;                   /* … in words */

    /* Used by the collecting thread. */
    kpti_gpu_lists ready; /* taken out of the store */
    kpti_gpu_table table;
    kpti_gpu_stacks stacks;
    uint64_t lost_kernels;
    kpt_gpu_device devices[KPTI_CUDA_MOST_DEVICES];
    char device_names[KPTI_CUDA_MOST_DEVICES][KPTI_CUDA_NAME];
    uint32_t device_count;
    uint32_t
        device_of[KPTI_MOST_CONTEXTS]; /* by context number: the device that records name, plus 1 */
} kpti_gpu_session;

#endif
