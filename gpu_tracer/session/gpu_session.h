/* gpu_session.h: the state of one recording, from start to destroy. gpu_recording.h has its state diagram. */
#ifndef KPTI_GPU_TRACER_SESSION_GPU_SESSION_H
#define KPTI_GPU_TRACER_SESSION_GPU_SESSION_H

#include "core/base/assert.h"
#include "core/base/hash_table.h"
#include "gpu_tracer/cupti/cuda_driver.h"
#include "gpu_tracer/cupti/cupti_library.h"
#include "gpu_tracer/cupti/unix_clock.h"
#include "gpu_tracer/records/launches.h"
#include "gpu_tracer/records/record_store.h"

enum { KPTI_MAX_CONTEXTS = 64 };

/* Per-correlation-id state: the launch, and the external correlation. */
typedef struct kpti_gpu_known {
    kpti_launch launch; /* correlation 0 marks a free slot */
    uint64_t external;
    uint32_t turn; /* the table's turn when the last record of this id arrived */
    uint32_t made; /* the table's made at that time */
} kpti_gpu_known;

typedef struct kpti_gpu_table {
    kpti_hash_table rows; /* of kpti_gpu_known, by correlation id */
    uint32_t turn;        /* number of times that the table was filled */
    uint32_t made;        /* number of rows made; turn and made may wrap around */
    uint32_t seen;        /* the turn in which rows were last dropped, after kpti_known_see */
    uint32_t pressed;     /* the turn in which rows were last dropped for lack of space */
    uint64_t forgotten;   /* rows dropped, and launches that never had one */
    uint64_t early;       /* those of them that were dropped or had no row for lack of space */
    uint64_t awaited;     /* those of them whose kernels have not arrived */
} kpti_gpu_table;

typedef struct kpti_gpu_session {
    const kpti_env *env;
    kpt_tracebacks tracebacks; /* ops is NULL if no stacks are gathered */
    uint32_t depth;
    int fewer_calls;        /* callbacks record the calls, CUPTI does not */
    _Atomic uint32_t state; /* KPT_GPU_*; 0 before start */
    kpti_gpu_budget budget;
    kpti_gpu_store store;
    kpti_unix_clock clock;
    const kpti_cupti *cupti;
    CUpti_SubscriberHandle subscriber;
    _Atomic(void *) contexts[KPTI_MAX_CONTEXTS]; /* live contexts in which calls were made */
    _Atomic uint32_t destroyed;                  /* contexts */
    _Atomic uint32_t captures;                   /* active captures */
    _Atomic uint64_t unlisted;         /* launches that did not fit into their threads' lists */
    _Atomic uint64_t unlisted_kernels; /* those of them that start a kernel */
    uint64_t start_time;               /* Unix time */
    uint64_t stop_time;                /* Unix time */
    kpt_status late_status;            /* the failure at the late start, with CUDA */
    kpti_error late;                   /* its text */

    /* Used by the collecting thread. */
    kpti_gpu_lists ready; /* taken from the store */
    kpti_gpu_table table;
    /* kpt_traceback, by number: the stacks that were delivered. Their numbers stay valid until destroy. */
    kpti_hash_table stacks;
    uint64_t lost_kernels;
    kpt_gpu_device devices[KPTI_CUDA_MAX_DEVICES];
    char device_names[KPTI_CUDA_MAX_DEVICES][KPTI_CUDA_NAME];
    uint32_t device_count;
    uint32_t
        device_of[KPTI_MAX_CONTEXTS]; /* by context number: the device that records name, plus 1 */
} kpti_gpu_session;

#endif
