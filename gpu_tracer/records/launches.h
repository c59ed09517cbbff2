/* launches.h: what threads were about when they called CUDA. Each thread has a list of its own, which it
 * appends to without a lock, and which is read while it does.
 *
 * Invariant: a launch is in its list before what it starts can be in a record. */
#ifndef KPTI_GPU_TRACER_RECORDS_LAUNCHES_H
#define KPTI_GPU_TRACER_RECORDS_LAUNCHES_H

#include "gpu_tracer/records/spsc_list.h"

enum {
    KPTI_LAUNCH_KERNEL = 1 << 0, /* a kernel is to come of it */
    KPTI_LAUNCH_RUNTIME =
        1 << 1, /* a call of the runtime: the driver's under it is the same once more */
    KPTI_LAUNCH_CAPTURED = 1 << 2, /* a capture was going on: perhaps nothing comes of it */
    KPTI_LAUNCH_FAILED =
        1 << 3, /* said behind it, when the call returns: no kernel will have its number */
    KPTI_LAUNCH_SEEN = 1 << 4,  /* its kernel has come */
    KPTI_LAUNCH_GRAPH = 1 << 5, /* any number of kernels is to come of it */
    KPTI_LAUNCH_HELD = 1 << 6   /* its stack was handed out: held_stacks.c has it */
};

/* Whether a kernel is still to come of it. */
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

/* A thread's part. They are never freed, but taken over by later threads. */
typedef struct kpti_gpu_thread {
    struct kpti_gpu_thread *next;
    _Atomic int taken;
    _Atomic int inside; /* it is in a callback: who ends a recording waits for it */
    uint32_t depth;     /* of calls of the runtime with a launch in them */
    uint32_t outer;     /* the correlation of the outermost of them */
    uint64_t os_tid;
    void *context;      /* that was told last … */
    uint32_t destroyed; /* … and how many had been destroyed by then */
    kpti_list list;
    kpti_list_place read; /* how far the list was read; the reader's */
} kpti_gpu_thread;

/* The calling thread's, or NULL where there is no memory. */
kpti_gpu_thread *kpti_launches_mine(void);
/* All threads: the first, then by next. */
kpti_gpu_thread *kpti_launches_threads(void);
/* In the child of a fork: all are empty, without anything being given back, and nobody is inside. */
void kpti_launches_forked(void);

#endif
