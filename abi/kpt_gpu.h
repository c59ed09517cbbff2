/* kpt_gpu.h: what GPUs do, an extension of the plugin: kernels, copies, calls of the CUDA APIs, each on the
 * trace's clock, with the number that links a call to what it started, and the Python stack of the call.
 *
 * Where there is no GPU, no driver, no CUPTI, or another tool has it, make answers with a no-op that says
 * why; nothing of CUDA's is initialised in a process that does not use it. */
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
    KPT_GPU_SYNC = 4,     /* a stream, an event, a context or a device was waited for */
    KPT_GPU_RUNTIME = 5,  /* a call of the runtime API, on the thread os_tid */
    KPT_GPU_DRIVER = 6,   /* … of the driver API */
    KPT_GPU_OVERHEAD = 7, /* CUPTI's own */
    KPT_GPU_RANGE = 8,    /* an NVTX range, on the thread os_tid */
    KPT_GPU_MARK = 9      /* an NVTX mark, likewise: end_ns equals start_ns */
};

enum {
    KPT_GPU_GRAPH = 1 << 0,   /* started by the launch of a CUDA graph */
    KPT_GPU_UNENDED = 1 << 1, /* a range that was open at stop: end_ns is that moment */
    KPT_GPU_ASYNC = 1 << 2    /* a copy or a setting of memory that its call did not wait for */
};

#define KPT_GPU_NONE UINT32_MAX /* no device, context or stream */

/* What happened. Fields that a kind does not have are 0, or KPT_GPU_NONE where they are indices. */
typedef struct kpt_gpu_event {
    uint16_t kind;  /* KPT_GPU_* */
    uint16_t flags; /* KPT_GPU_GRAPH and so on */
    uint32_t device;
    uint32_t context;
    uint32_t stream;
    int64_t start_ns; /* Unix time */
    int64_t end_ns;
    uint64_t correlation; /* of a call and of what it started; 0: none */
    uint64_t external;    /* the external correlation that was on top; 0: none */
    uint64_t os_tid;      /* of calls, ranges and marks; of others who called, 0: unknown */
    kpt_str name; /* the kernel's, demangled; the API function's; a range's; an overhead's */
    kpt_traceback
        python;     /* where the call was made: of it, and of what it started; not to be released */
    uint64_t bytes; /* of copies and sets */
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t registers;            /* a thread's */
    uint32_t shared_static_bytes;  /* a block's */
    uint32_t shared_dynamic_bytes; /* likewise */
    uint32_t local_bytes;          /* a thread's */
    uint32_t
        copy_kind; /* as CUpti_ActivityMemcpyKind: 1 host to device, 2 back, 8 within a device, 10 between two */
    uint32_t
        source_kind; /* as CUpti_ActivityMemoryKind: 1 pageable, 2 pinned, 3 device, 4 array, 5 managed */
    uint32_t target_kind; /* likewise; of a set, where to */
    uint32_t sync_kind;   /* as CUpti_ActivitySynchronizationType */
    uint32_t event;       /* the one that a wait is about */
    uint32_t graph;       /* with KPT_GPU_GRAPH */
    uint32_t value;       /* of a set: what is set; of a call: what it returned */
    uint32_t cbid;        /* of a call: its number in CUPTI */
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

/* A name that the program gave, with NVTX. */
enum { KPT_GPU_NAMES_DEVICE = 1, KPT_GPU_NAMES_CONTEXT = 2, KPT_GPU_NAMES_STREAM = 3 };

typedef struct kpt_gpu_name {
    uint32_t what; /* KPT_GPU_NAMES_* */
    uint32_t id;   /* its device, context or stream */
    kpt_str name;
} kpt_gpu_name;
#define KPT_GPU_NAME_V1_SIZE KPT_FIELD_END(kpt_gpu_name, name)

typedef struct kpt_gpu_batch {
    uint32_t struct_size;
    uint32_t event_stride;
    const kpt_gpu_event *events; /* as CUPTI hands them over: in no order */
    uint64_t event_count;
    const kpt_gpu_device *devices;
    uint32_t device_count;
    uint32_t device_stride;
    const kpt_gpu_name *names;
    uint32_t name_count;
    uint32_t name_stride;
} kpt_gpu_batch;
#define KPT_GPU_BATCH_V1_SIZE KPT_FIELD_END(kpt_gpu_batch, name_stride)

/* Receives a part of what was recorded.
 * thread: the one that called collect, inside that call
 * GIL: as collect's caller has it
 * ownership: the arrays are the plugin's until it returns, strings and tracebacks until destroy
 * errors: any status but KPT_OK ends the collection, which returns it; what was not taken is lost
 * since: 1.1 */
typedef kpt_status (*kpt_gpu_batch_fn)(void *sink_ctx, const kpt_gpu_batch *batch);

typedef struct kpt_gpu_args {
    uint32_t struct_size;
    uint32_t flags;                   /* none defined: must be 0 */
    const kpt_tracebacks *tracebacks; /* gathers the stacks of calls; NULL: none are */
    uint32_t stack_depth;             /* the most frames; 0 = all */
    uint32_t spare;                   /* must be 0 */
    uint64_t budget_bytes; /* of buffers and of events that wait to be collected; 0 = 512 MiB */
} kpt_gpu_args;
#define KPT_GPU_ARGS_V1_SIZE KPT_FIELD_END(kpt_gpu_args, budget_bytes)

/* 0: it was not started yet. */
enum {
    KPT_GPU_WAITING = 1, /* CUDA is not used yet: recording begins when it is */
    KPT_GPU_RECORDING = 2,
    KPT_GPU_STOPPED = 3
};

typedef struct kpt_gpu_stats {
    uint32_t struct_size;
    uint32_t state;  /* KPT_GPU_WAITING and so on */
    uint64_t events; /* recorded */
    uint64_t
        dropped; /* by CUPTI, or beyond the budget; also those that lack their stack for that */
    uint64_t
        lost_kernels; /* launches that were seen and whose kernels never came: another tool took them */
    uint64_t bytes_held;
} kpt_gpu_stats;
#define KPT_GPU_STATS_V1_SIZE KPT_FIELD_END(kpt_gpu_stats, bytes_held)

typedef struct kpt_gpu_ops {
    uint32_t struct_size;
    uint32_t flags; /* none defined */

    /* Begins to record, once; where CUDA is not initialised yet, as soon as it is.
     * thread: any, one control call at a time
     * GIL: not needed
     * ownership: none passes
     * errors: KPT_E_STATE, KPT_E_BUSY where another tool has CUPTI (last_error says which, where it can
     *         be known), KPT_E_UNSUPPORTED, KPT_E_MEMORY, KPT_E_HANDLE
     * since: 1.1 */
    kpt_status (*start)(kpt_handle self);

    /* Ends recording: waits for what the GPU has begun, and for CUPTI to hand it over.
     * thread: any
     * GIL: not needed; better released, since it waits
     * ownership: none passes
     * errors: KPT_E_STATE, KPT_E_HANDLE, KPT_E_BUSY; of a recording that was to begin with the first use
     *         of CUDA and could not, what start would have answered. It has ended all the same
     * since: 1.1 */
    kpt_status (*stop)(kpt_handle self);

    /* Hands out what has been recorded since the last time, in one or more calls of SINK: while recording,
     * what is finished; afterwards all. Each batch has all devices and names that are known.
     * thread: any
     * GIL: not needed
     * ownership: as kpt_gpu_batch_fn
     * errors: KPT_E_INVALID, KPT_E_MEMORY, KPT_E_BUSY, KPT_E_HANDLE, what the sink answered
     * since: 1.1 */
    kpt_status (*collect)(kpt_handle self, kpt_gpu_batch_fn sink, void *sink_ctx);

    /* Fills OUT.
     * thread: any
     * GIL: not needed
     * ownership: none passes
     * errors: KPT_E_INVALID, KPT_E_SIZE, KPT_E_HANDLE, KPT_E_BUSY
     * since: 1.1 */
    kpt_status (*get_stats)(kpt_handle self, kpt_gpu_stats *out);

    /* Why the last call failed; on a no-op, at first, why it is one.
     * thread: any, at any time
     * GIL: not needed
     * ownership: as kpt_last_error_fn
     * errors: as kpt_last_error_fn
     * since: 1.1 */
    kpt_last_error_fn last_error;

    /* Ends recording if need be, and frees it.
     * thread: any
     * GIL: not needed
     * ownership: the handle, and all strings, are dead
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

    /* Makes a tracer of GPUs; a no-op where there is none to trace. One at a time records.
     * thread: any
     * GIL: not needed
     * ownership: args is borrowed during the call, the tracebacks' object until destroy; the tracer is the
     *            caller's, until destroy
     * errors: KPT_E_INVALID, KPT_E_SIZE, KPT_E_UNSUPPORTED, KPT_E_MEMORY, KPT_E_LIMIT, KPT_E_HANDLE
     * since: 1.1 */
    kpt_status (*make)(kpt_handle plugin, const kpt_gpu_args *args, kpt_gpu_tracer *out);
} kpt_gpu_maker;
#define KPT_GPU_MAKER_V1_SIZE KPT_FIELD_END(kpt_gpu_maker, make)

#ifdef __cplusplus
}
#endif
#endif
