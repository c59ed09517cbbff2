/* gpu_recording.h: one recording, from start to destroy. One at a time is current: CUPTI's callbacks find it.
 *
 *   made ──start──> waiting ──CUDA is initialised──> recording ──stop──> stopped
 *             └────────── it is already ─────────────────^
 *
 * gpu_recording.c has its life, callback.c what runs inside CUDA's calls, buffers.c what runs on CUPTI's thread,
 * cuda_injection.c how CUDA tells that it is initialised, correlate.c what is handed out, correlation_table.c and held_stacks.c what it
 * is made of. */
#ifndef KPTI_GPU_TRACER_GPU_RECORDING_H
#define KPTI_GPU_TRACER_GPU_RECORDING_H

#include "gpu_tracer/cupti/cuda_driver.h"
#include "gpu_tracer/cupti/cupti_library.h"
#include "gpu_tracer/cupti/unix_clock.h"
#include "gpu_tracer/records/launches.h"
#include "gpu_tracer/records/record_store.h"

enum { KPTI_MOST_CONTEXTS = 64 };

/* What is known by a correlation: the launch, and the external one. */
typedef struct kpti_gpu_known {
    kpti_launch launch; /* correlation 0: a free place */
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

/* The stacks that were handed out: their numbers stay good until destroy. */
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

    /* Of whoever collects. */
    kpti_gpu_lists ready; /* taken out of the store */
    kpti_gpu_table table;
    kpti_gpu_stacks stacks;
    uint64_t lost_kernels;
    kpt_gpu_device devices[KPTI_CUDA_MOST_DEVICES];
    char device_names[KPTI_CUDA_MOST_DEVICES][KPTI_CUDA_NAME];
    uint32_t device_count;
    uint32_t
        device_of[KPTI_MOST_CONTEXTS]; /* by context number, as records tell; 1 more than it is */
} kpti_gpu_session;

/* gpu_recording.c */
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

/* cuda_injection.c */
kpt_status kpti_injection_set(kpti_error *error); /* KPT_E_BUSY: somebody else's is set */
void kpti_injection_clear(void);
void kpti_injection_nvtx(const char *cupti_path);

/* cupti_conflicts.c: who may have CUPTI, in words. */
const char *kpti_rival(void);

/* correlate.c */
void kpti_join_absorb(kpti_gpu_session *s); /* what has come since */
/* What waits to be handed out is looked at: its rows are not forgotten. */
void kpti_join_see(kpti_gpu_session *s);
void kpti_join_event(kpti_gpu_session *s, kpt_gpu_event *event); /* completes it */
/* The event of a call; 0: it is told already, by the call of the runtime that it is a part of. */
int kpti_join_call(kpti_gpu_session *s, const kpti_gpu_call *call, kpt_gpu_event *out);

/* correlation_table.c: the table. */
kpti_gpu_known *kpti_known_find(const kpti_gpu_table *table, uint64_t correlation); /* or NULL */
/* The row, made if need be; NULL where there is no room. */
kpti_gpu_known *kpti_known_row(kpti_gpu_session *s, uint32_t correlation);
/* So many have no row, or none any more; of AWAITED kernels are to come. */
void kpti_known_lose(kpti_gpu_session *s, uint64_t launches, uint64_t awaited);
/* Something of its correlation has come. */
void kpti_known_touch(const kpti_gpu_table *table, kpti_gpu_known *row);
/* After the last of it: those whose kernels have not come. */
void kpti_known_count_lost(kpti_gpu_session *s);
void kpti_known_free(kpti_gpu_session *s);

/* held_stacks.c */
void kpti_stacks_release(const kpti_gpu_session *s, kpt_traceback traceback);
/* Before LAUNCH's stack is handed out; 0: there is no room, and it must not be. */
int kpti_stacks_hold(kpti_gpu_session *s, kpti_launch *launch);
void kpti_stacks_free(kpti_gpu_session *s);

/* deliver.c */
kpt_status kpti_deliver(kpti_gpu_session *s, kpt_gpu_batch_fn sink, void *sink_ctx,
                        kpti_error *error);

#endif
