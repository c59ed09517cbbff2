/* launches.h: records the calls that threads make to CUDA, with their stacks. Each thread has its own list.
 * It appends to the list without a lock, while another thread reads.
 *
 * Invariant: a launch is in its list before a record of the activity that it starts can arrive. */
#ifndef KPTI_GPU_TRACER_RECORDS_LAUNCHES_H
#define KPTI_GPU_TRACER_RECORDS_LAUNCHES_H

#include "gpu_tracer/records/spsc_list.h"

enum {
    KPTI_LAUNCH_KERNEL = 1 << 0,  /* it starts a kernel */
    KPTI_LAUNCH_RUNTIME = 1 << 1, /* a runtime call; the driver call inside it is the same launch */
    KPTI_LAUNCH_CAPTURED = 1 << 2, /* a capture was active, so it may start nothing */
    KPTI_LAUNCH_FAILED = 1 << 3,   /* added when the call returns: no kernel will have this id */
    KPTI_LAUNCH_SEEN = 1 << 4,     /* its kernel has arrived */
    KPTI_LAUNCH_GRAPH = 1 << 5,    /* it starts any number of kernels */
    KPTI_LAUNCH_HELD = 1 << 6      /* its stack was delivered; held_stacks.c owns it */
};

/* Returns 1 if the launch's kernel is still to arrive. */
static inline int kpti_launch_is_awaited(uint32_t flags)
{
    const uint32_t settled = KPTI_LAUNCH_CAPTURED | KPTI_LAUNCH_FAILED | KPTI_LAUNCH_SEEN;
    return flags & KPTI_LAUNCH_KERNEL && !(flags & settled);
}

typedef struct kpti_launch {
    uint32_t correlation;
    uint32_t flags; /* KPTI_LAUNCH_* */
    uint64_t os_tid;
    kpt_traceback python;
} kpti_launch;

/* Per-thread state. It is never freed; a later thread takes it over. */
typedef struct kpti_gpu_thread {
    struct kpti_gpu_thread *next;
    _Atomic int taken;
    _Atomic int inside; /* in a callback; the stopping thread waits for it */
    uint32_t depth;     /* of nested runtime calls with a launch */
    uint32_t outer;     /* correlation id of the outermost of them */
    uint64_t os_tid;
    void *context;      /* the last context that the thread recorded */
    uint32_t destroyed; /* the session's count of destroyed contexts at that time */
    kpti_list list;
    kpti_list_position read; /* position of the reader; only the reader uses it */
    kpti_list calls;         /* of kpti_gpu_call, with KPT_GPU_FEWER_CALLS */
    kpti_list_position calls_read;
} kpti_gpu_thread;

/* Returns the calling thread's state, or NULL if there is no memory. */
kpti_gpu_thread *kpti_launches_mine(void);
/* Returns the first thread; the others follow by next. */
kpti_gpu_thread *kpti_launches_threads(void);
/* Called in the child of a fork. Empties all lists without freeing memory, and clears `inside`. */
void kpti_launches_forked(void);

#endif
