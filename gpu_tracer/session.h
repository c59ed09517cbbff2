/* session.h: one recording, from start to destroy. One at a time is current: CUPTI's callbacks find it.
 *
 *   made ──start──> waiting ──CUDA is initialised──> recording ──stop──> stopped
 *             └────────── it is already ─────────────────^
 *
 * session.c has its life, callback.c what runs inside CUDA's calls, buffers.c what runs on CUPTI's thread,
 * injection.c how CUDA tells that it is initialised, join.c what is handed out. */
#ifndef KPTI_GPU_SESSION_H
#define KPTI_GPU_SESSION_H

#include "cupti_library.h"
#include "driver.h"
#include "launches.h"
#include "store.h"
#include "unix_clock.h"

enum { KPTI_MOST_CONTEXTS = 64 };

/* What is known by a correlation: the launch, and the external one. */
typedef struct kpti_gpu_known {
    kpti_launch launch; /* correlation 0: a free place */
    uint64_t external;
} kpti_gpu_known;

typedef struct kpti_gpu_table {
    kpti_gpu_known *rows; /* by the correlation's hash; a power of two of them */
    uint64_t room;
    uint64_t count;
} kpti_gpu_table;

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
    uint64_t stop_time;                           /* on the clock of records */
    kpt_status late_status;                       /* why it did not begin with CUDA … */
    kpti_error late;                              /* … in words */

    /* Of whoever collects. */
    kpti_gpu_lists ready; /* taken out of the store */
    kpti_gpu_table table;
    uint64_t lost_kernels;
    kpt_gpu_device devices[KPTI_CUDA_MOST_DEVICES];
    char device_names[KPTI_CUDA_MOST_DEVICES][KPTI_CUDA_NAME];
    uint32_t device_count;
    uint32_t
        device_of[KPTI_MOST_CONTEXTS]; /* by context number, as records tell; 1 more than it is */
} kpti_gpu_session;

/* session.c */
kpt_status kpti_session_start(kpti_gpu_session *s, kpti_error *error);
kpt_status kpti_session_stop(kpti_gpu_session *s, kpti_error *error);
void kpti_session_forked(kpti_gpu_session *s);
/* CUDA is being initialised, on this thread. */
void kpti_session_cuda_begins(void);
/* The current one for a while, or NULL; then leave. Any thread. */
kpti_gpu_session *kpti_session_enter(void);
void kpti_session_leave(void);
/* The same for callbacks, without a lock: they say in their thread that they are inside. */
extern _Atomic(kpti_gpu_session *) kpti_session_calls;

/* callback.c: a CUpti_CallbackFunc. */
void CUPTIAPI kpti_callback(void *ctx, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                            const void *data);
/* Waits until nobody is inside. */
void kpti_callback_drain(void);

/* buffers.c: for cuptiActivityRegisterCallbacks. */
void CUPTIAPI kpti_buffer_requested(uint8_t **buffer, size_t *size, size_t *most_records);
void CUPTIAPI kpti_buffer_completed(CUcontext context, uint32_t stream, uint8_t *buffer,
                                    size_t size, size_t valid_size);
/* Gives back the buffers that lie idle. */
void kpti_buffers_trim(kpti_gpu_session *s);
void kpti_buffers_forked(void);

/* injection.c */
kpt_status kpti_injection_set(kpti_error *error); /* KPT_E_BUSY: somebody else's is set */
void kpti_injection_clear(void);
void kpti_injection_nvtx(const char *cupti_path);

/* rivals.c: who may have CUPTI, in words. */
const char *kpti_rival(void);

/* join.c */
void kpti_join_absorb(kpti_gpu_session *s);                            /* what has come since */
void kpti_join_count_lost(kpti_gpu_session *s);                        /* after the last of it */
void kpti_join_event(const kpti_gpu_session *s, kpt_gpu_event *event); /* completes it */
/* The event of a call; 0: it is told already, by the call of the runtime that it is a part of. */
int kpti_join_call(const kpti_gpu_session *s, const kpti_gpu_call *call, kpt_gpu_event *out);
void kpti_join_free(kpti_gpu_session *s);

/* deliver.c */
kpt_status kpti_deliver(kpti_gpu_session *s, kpt_gpu_batch_fn sink, void *sink_ctx,
                        kpti_error *error);

#endif
