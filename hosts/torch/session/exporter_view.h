/* exporter_view.h: the recording of one profiler session, which the shim lends to the exporter in a PyCapsule
 * of this name. All pointers live as long as the capsule. Plain C. */
#ifndef KPTI_HOSTS_TORCH_SESSION_EXPORTER_VIEW_H
#define KPTI_HOSTS_TORCH_SESSION_EXPORTER_VIEW_H

#include "abi/kpt.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KPTI_TORCH_RECORDING_CAPSULE "kpytrace.recording"

/* Writes the name that torch gives to a watched call, "nn.Module: Linear_0", with a NUL into BUFFER of SIZE
 * bytes. *NUMBER receives the module's number. Returns the name's length, or 0 if the call keeps its own name
 * (an optimizer's step, an invalid answer). Any thread, no GIL. */
typedef uint64_t (*kpti_torch_name_fn)(void *ctx, uint64_t answer, char *buffer, uint64_t size,
                                       uint64_t *number);

/* Returns 1 if the calls of the thread with this host_value are part of the trace. The pointers receive torch's
 * numbers of the thread: "Python thread", and the number in its events. Any thread, no GIL. */
typedef int (*kpti_torch_thread_fn)(void *ctx, const kpt_thread *thread, uint64_t *python_thread,
                                    uint64_t *own_tid);

/* Returns the line of a Python call that was running when the recording began (KPT_ACTIVITY_BEGAN_BEFORE); the
 * line of its activity may be a later one. DEPTH is the activity's: these calls are a thread's outermost.
 * Returns 0 if the activity's line is to be used. Any thread, no GIL. */
typedef uint32_t (*kpti_torch_line_fn)(void *ctx, const kpt_thread *thread, const kpt_name *name,
                                       uint32_t depth);

enum { KPTI_TORCH_OUT_OF_MEMORY = 1 << 0 };

/* Memory that torch reported to a profile: an allocation, or a free if SIZE is negative. */
typedef struct kpti_torch_memory {
    int64_t at_ns; /* Unix time */
    uint64_t os_tid;
    uint64_t tid; /* torch's own number of the thread */
    uint64_t address;
    int64_t size;
    uint64_t total_allocated;
    uint64_t total_reserved;
    int32_t device_type; /* c10::DeviceType */
    int32_t device_index;
    uint32_t flags; /* KPTI_TORCH_* */
    uint32_t reserved;
} kpti_torch_memory;

/* The calls that torch has, and writes itself. */
enum {
    KPTI_TORCH_HANDED_ALL = 0,
    KPTI_TORCH_HANDED_MARKED = 1, /* the calls of KPT_DELIVER_MARKED, and collections */
    KPTI_TORCH_HANDED_NONE = 2
};

/* torch shows a Python call as FILE(LINE): FUNCTION, with the activity's line; that of a fresh
 * "<module>" is 0. */
typedef struct kpti_torch_recording {
    uint32_t struct_size;
    uint32_t handed; /* KPTI_TORCH_HANDED_*: in Kineto's trace */
    uint32_t listed; /* KPTI_TORCH_HANDED_*: in torch's list of events */
    uint32_t reserved;
    kpt_tracer tracer;      /* stopped; the exporter may call get_events, but not destroy */
    kpt_convert_fn convert; /* ticks to Unix time, as torch converted its own events */
    void *convert_ctx;
    int64_t end_ns; /* end of the session, and of its open calls */
    void *ctx;      /* passed to the functions below */
    kpti_torch_name_fn name_of;
    kpti_torch_thread_fn thread_of;
    kpti_torch_line_fn open_line;
    kpt_str *prefixes; /* a file name loses the first prefix that it begins with */
    uint64_t prefix_count;
    const kpti_torch_memory *memory; /* by time; NULL if none was recorded */
    uint64_t memory_count;
    uint64_t memory_lost; /* reports that are missing, for want of memory */
    /* Of a native profile: the numbers of operators and annotations begin behind this one, so that those of two
     * profiles differ. */
    uint64_t numbers_before;
    uint32_t
        has_no_links; /* 1: the program has switched off links from forward operators to autograd's nodes */
    uint32_t reserved2;
} kpti_torch_recording;

#ifdef __cplusplus
}
#endif
#endif
