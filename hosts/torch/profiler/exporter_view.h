/* exporter_view.h: what the shim lends to the exporter: the recording of one profiler session, in a
 * PyCapsule of this name. All pointers live as long as the capsule. Plain C. */
#ifndef KPTI_HOSTS_TORCH_PROFILER_EXPORTER_VIEW_H
#define KPTI_HOSTS_TORCH_PROFILER_EXPORTER_VIEW_H

#include "abi/kpt.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KPTI_TORCH_RECORDING_CAPSULE "kpytrace.recording"

/* The name that torch gives to a watched call, "nn.Module: Linear_0", written with a NUL into BUFFER
 * of SIZE bytes; *NUMBER receives the module's number. Returns the name's length, 0 where the call
 * keeps its own name (an optimizer's step, an answer that is none). Any thread, no GIL. */
typedef uint64_t (*kpti_torch_name_fn)(void *ctx, uint64_t answer, char *buffer, uint64_t size,
                                       uint64_t *number);

/* Whether calls of the thread with this host_value are part of the trace, and torch's numbers of the
 * thread: "Python thread", and the one of its events. Any thread, no GIL. */
typedef int (*kpti_torch_thread_fn)(void *ctx, const kpt_thread *thread, uint64_t *python_thread,
                                    uint64_t *own_tid);

/* The line of a Python call that was running when the recording began (KPT_ACTIVITY_BEGAN_BEFORE), which
 * its activity may be past. DEPTH is the activity's: these calls are a thread's outermost. 0: use the
 * activity's line. Any thread, no GIL. */
typedef uint32_t (*kpti_torch_line_fn)(void *ctx, const kpt_thread *thread, const kpt_name *name,
                                       uint32_t depth);

/* What torch has of the calls, and writes itself. */
enum {
    KPTI_TORCH_HANDED_ALL = 0,
    KPTI_TORCH_HANDED_MARKED = 1, /* those of KPT_DELIVER_MARKED, and collections */
    KPTI_TORCH_HANDED_NONE = 2
};

/* torch shows a Python call as FILE(LINE): FUNCTION, with the activity's line; that of a fresh
 * "<module>" is 0. */
typedef struct kpti_torch_recording {
    uint32_t struct_size;
    uint32_t handed; /* KPTI_TORCH_HANDED_*: in Kineto's trace */
    uint32_t listed; /* KPTI_TORCH_HANDED_*: in torch's list of events */
    uint32_t reserved;
    kpt_tracer tracer;      /* stopped; get_events may be called, destroy not */
    kpt_convert_fn convert; /* ticks to Unix time, as torch converted its own events */
    void *convert_ctx;
    int64_t end_ns; /* of the session: when open calls end */
    void *ctx;      /* of the functions below */
    kpti_torch_name_fn name_of;
    kpti_torch_thread_fn thread_of;
    kpti_torch_line_fn open_line;
    kpt_str *prefixes; /* file names are trimmed by the first that they begin with */
    uint64_t prefix_count;
} kpti_torch_recording;

#ifdef __cplusplus
}
#endif
#endif
