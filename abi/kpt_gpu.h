/* kpt_gpu.h: an extension of the plugin that records GPU activity: kernels, copies and calls of the
 * CUDA APIs. Each event is on the trace's clock and has the number that links a call to the work
 * that it started, and the Python stack of the call.
 *
 * If there is no GPU, no driver or no CUPTI, or if another tool uses CUPTI, make returns a no-op
 * whose last_error has the reason. The extension never initialises CUDA in a process that does not
 * use it. */
#ifndef KPT_GPU_H
#define KPT_GPU_H

#include "kpt_base.h"
#include "kpt_traceback.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KPT_EXT_GPU "kpt.gpu.v1" /* fills a kpt_gpu_maker */

enum {
    KPT_GPU_KERNEL = 1,
    KPT_GPU_MEMCPY = 2,
    KPT_GPU_MEMSET = 3,
    KPT_GPU_SYNC = 4,     /* a wait for a stream, an event, a context or a device */
    KPT_GPU_RUNTIME = 5,  /* a call of the runtime API, on the thread os_tid */
    KPT_GPU_DRIVER = 6,   /* a call of the driver API, on the thread os_tid */
    KPT_GPU_OVERHEAD = 7, /* CUPTI's overhead */
    KPT_GPU_RANGE = 8,    /* an NVTX range, on the thread os_tid */
    KPT_GPU_MARK = 9      /* an NVTX mark, on the thread os_tid; end_ns equals start_ns */
};

enum {
    KPT_GPU_GRAPH = 1 << 0,   /* started by the launch of a CUDA graph */
    KPT_GPU_UNENDED = 1 << 1, /* a range that was open at stop; end_ns is that time */
    KPT_GPU_ASYNC = 1 << 2    /* a copy or memset that its call did not wait for */
};

#define KPT_GPU_NONE UINT32_MAX /* no device, context or stream */

/* One event. A field that does not apply to the kind is 0, or KPT_GPU_NONE if it is an index. */
typedef struct kpt_gpu_event {
    uint16_t kind;  /* KPT_GPU_* */
    uint16_t flags; /* KPT_GPU_GRAPH, KPT_GPU_UNENDED, KPT_GPU_ASYNC */
    uint32_t device;
    uint32_t context;
    uint32_t stream;
    int64_t start_ns; /* Unix time */
    int64_t end_ns;
    uint64_t correlation; /* links a call and the work that it started; 0 = none */
    uint64_t external;    /* the external correlation on top of the stack; 0 = none */
    /* The thread of a call, a range or a mark. For other kinds, the thread whose call started the
     * work, or 0 if unknown. */
    uint64_t os_tid;
    kpt_str name; /* of the kernel (demangled), API function, range or overhead */
    /* The stack of the call, also for the work that the call started. The host must not release
     * it. */
    kpt_traceback python;
    uint64_t bytes; /* of copies and memsets */
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t registers;            /* per thread */
    uint32_t shared_static_bytes;  /* per block */
    uint32_t shared_dynamic_bytes; /* per block */
    uint32_t local_bytes;          /* per thread */
    /* As CUpti_ActivityMemcpyKind: 1 host to device, 2 device to host, 8 within a device, 10
     * between two devices. */
    uint32_t copy_kind;
    /* As CUpti_ActivityMemoryKind: 1 pageable, 2 pinned, 3 device, 4 array, 5 managed. */
    uint32_t source_kind;
    uint32_t target_kind; /* as source_kind; for a memset, its destination */
    uint32_t sync_kind;   /* as CUpti_ActivitySynchronizationType */
    uint32_t event;       /* the event that a wait is for */
    uint32_t graph;       /* with KPT_GPU_GRAPH */
    uint32_t value;       /* of a memset: the value written; of a call: its return value */
    uint32_t cbid;        /* of a call: its callback id in CUPTI */
} kpt_gpu_event;
#define KPT_GPU_EVENT_V1_SIZE KPT_FIELD_END(kpt_gpu_event, cbid)

typedef struct kpt_gpu_device {
    uint32_t index;
    uint32_t multiprocessors;
    kpt_str name;
    uint64_t memory_bytes;
    uint32_t compute_major;
    uint32_t compute_minor;
    uint32_t warp_size;
    uint32_t max_threads_per_block;
    uint32_t max_threads_per_multiprocessor;
    uint32_t registers_per_multiprocessor;
    uint32_t shared_bytes_per_multiprocessor;
    uint32_t clock_khz;
} kpt_gpu_device;
#define KPT_GPU_DEVICE_V1_SIZE KPT_FIELD_END(kpt_gpu_device, clock_khz)

/* A name that the program set with NVTX. */
enum { KPT_GPU_NAMES_DEVICE = 1, KPT_GPU_NAMES_CONTEXT = 2, KPT_GPU_NAMES_STREAM = 3 };

typedef struct kpt_gpu_name {
    uint32_t what; /* KPT_GPU_NAMES_* */
    uint32_t id;   /* of the device, context or stream */
    kpt_str name;
} kpt_gpu_name;
#define KPT_GPU_NAME_V1_SIZE KPT_FIELD_END(kpt_gpu_name, name)

typedef struct kpt_gpu_batch {
    uint32_t struct_size;
    uint32_t event_stride;
    const kpt_gpu_event *events; /* in the order in which CUPTI delivers them: unsorted */
    uint64_t event_count;
    const kpt_gpu_device *devices;
    uint32_t device_count;
    uint32_t device_stride;
    const kpt_gpu_name *names;
    uint32_t name_count;
    uint32_t name_stride;
} kpt_gpu_batch;
#define KPT_GPU_BATCH_V1_SIZE KPT_FIELD_END(kpt_gpu_batch, name_stride)

/* Receives some of the recorded events.
 * thread: the thread that called collect, inside that call
 * GIL: as collect's caller has it
 * ownership: the arrays belong to the plugin and are valid until the sink returns, strings and
 *     tracebacks until destroy
 * errors: any status other than KPT_OK ends the collection, which returns that status; the events
 *     that were not delivered are lost
 * since: 1.1 */
typedef kpt_status (*kpt_gpu_batch_fn)(void *sink_ctx, const kpt_gpu_batch *batch);

/* Flags of kpt_gpu_args. */
enum {
    /* Records of the calls of CUDA only those that start work, wait for it, allocate memory or load
     * code, with their times as a callback around them measures. There are no KPT_GPU_SYNC and
     * KPT_GPU_OVERHEAD events and no external correlations. Without the flag CUPTI itself records
     * nearly every call, which slows a program with many short calls considerably. A plugin before
     * 1.2 returns KPT_E_UNSUPPORTED. Since 1.2 */
    KPT_GPU_FEWER_CALLS = 1 << 0
};

typedef struct kpt_gpu_args {
    uint32_t struct_size;
    uint32_t flags;                   /* KPT_GPU_FEWER_CALLS */
    const kpt_tracebacks *tracebacks; /* captures the stacks of calls; NULL = no stacks */
    uint32_t stack_depth;             /* maximum number of frames; 0 = all */
    uint32_t spare;                   /* must be 0 */
    uint64_t budget_bytes;            /* of buffers and of events not yet collected; 0 = 512 MiB */
} kpt_gpu_args;
#define KPT_GPU_ARGS_V1_SIZE KPT_FIELD_END(kpt_gpu_args, budget_bytes)

/* The states. 0 means that the tracer was not started yet. */
enum {
    KPT_GPU_WAITING = 1, /* CUDA is not in use yet; recording begins when it is */
    KPT_GPU_RECORDING = 2,
    KPT_GPU_STOPPED = 3
};

typedef struct kpt_gpu_stats {
    uint32_t struct_size;
    uint32_t state;  /* KPT_GPU_WAITING, KPT_GPU_RECORDING, KPT_GPU_STOPPED */
    uint64_t events; /* recorded */
    /* Events dropped by CUPTI or beyond the budget, and events that lack their stack because of the
     * budget. */
    uint64_t dropped;
    /* Launches that were seen but whose kernels were never reported, because another tool received
     * them. */
    uint64_t lost_kernels;
    uint64_t bytes_held;
} kpt_gpu_stats;
#define KPT_GPU_STATS_V1_SIZE KPT_FIELD_END(kpt_gpu_stats, bytes_held)

typedef struct kpt_gpu_ops {
    uint32_t struct_size;
    uint32_t flags; /* none defined */

    /* Starts recording; legal once. If CUDA is not initialised yet, recording begins as soon as it
     * is.
     * thread: any, one control call at a time
     * GIL: not needed
     * ownership: nothing is transferred
     * errors: KPT_E_STATE, KPT_E_BUSY if another tool uses CUPTI (last_error names it if it can be
     *     determined), KPT_E_UNSUPPORTED, KPT_E_MEMORY, KPT_E_HANDLE
     * since: 1.1 */
    kpt_status (*start)(kpt_handle self);

    /* Ends recording. Waits for the work that the GPU has begun, and for CUPTI to deliver its
     * records.
     * thread: any
     * GIL: not needed; the caller should release it, since stop waits
     * ownership: nothing is transferred
     * errors: KPT_E_STATE, KPT_E_HANDLE, KPT_E_BUSY; if recording was to begin with the first use
     *     of CUDA and could not, the status that start would have returned. Recording has ended in
     *     every case
     * since: 1.1 */
    kpt_status (*stop)(kpt_handle self);

    /* Delivers the events recorded since the last call, in one or more calls of SINK. While
     * recording it delivers finished events, afterwards all. Each batch contains all devices and
     * names known so far.
     * thread: any
     * GIL: not needed
     * ownership: as kpt_gpu_batch_fn
     * errors: KPT_E_INVALID, KPT_E_MEMORY, KPT_E_BUSY, KPT_E_HANDLE, the status that the sink
     *     returned
     * since: 1.1 */
    kpt_status (*collect)(kpt_handle self, kpt_gpu_batch_fn sink, void *sink_ctx);

    /* Fills OUT with the counters.
     * thread: any
     * GIL: not needed
     * ownership: nothing is transferred
     * errors: KPT_E_INVALID, KPT_E_SIZE, KPT_E_HANDLE, KPT_E_BUSY
     * since: 1.1 */
    kpt_status (*get_stats)(kpt_handle self, kpt_gpu_stats *out);

    /* Returns the reason why the last call failed. On a no-op it first returns the reason why the
     * tracer is a no-op.
     * thread: any, at any time
     * GIL: not needed
     * ownership: as kpt_last_error_fn
     * errors: as kpt_last_error_fn
     * since: 1.1 */
    kpt_last_error_fn last_error;

    /* Ends recording if necessary, and frees the tracer.
     * thread: any
     * GIL: not needed
     * ownership: the handle and all strings become invalid
     * errors: KPT_E_HANDLE, KPT_E_BUSY
     * since: 1.1 */
    kpt_status (*destroy)(kpt_handle self);
} kpt_gpu_ops;
#define KPT_GPU_OPS_V1_SIZE KPT_FIELD_END(kpt_gpu_ops, destroy)

typedef struct kpt_gpu_tracer {
    uint32_t struct_size;
    uint32_t flags; /* KPT_OBJECT_* */
    const kpt_gpu_ops *ops;
    kpt_handle self;
} kpt_gpu_tracer;
#define KPT_GPU_TRACER_V1_SIZE KPT_FIELD_END(kpt_gpu_tracer, self)

typedef struct kpt_gpu_maker {
    uint32_t struct_size;
    uint32_t flags; /* none defined */

    /* Makes a GPU tracer, or a no-op if there is no GPU to trace. Only one tracer records at a
     * time.
     * thread: any
     * GIL: not needed
     * ownership: args is borrowed during the call, the object in args->tracebacks until destroy;
     *     the tracer belongs to the caller until destroy
     * errors: KPT_E_INVALID, KPT_E_SIZE, KPT_E_UNSUPPORTED, KPT_E_MEMORY, KPT_E_LIMIT, KPT_E_HANDLE
     * since: 1.1 */
    kpt_status (*make)(kpt_handle plugin, const kpt_gpu_args *args, kpt_gpu_tracer *out);
} kpt_gpu_maker;
#define KPT_GPU_MAKER_V1_SIZE KPT_FIELD_END(kpt_gpu_maker, make)

#ifdef __cplusplus
}
#endif
#endif
