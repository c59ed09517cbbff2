/* kpt_activity.h: what a tracer delivers: finished calls, in batches, with the names and threads
 * that they refer to.
 *
 * Invariants of one delivery:
 *  - a name or thread is in a batch no later than the first activity that refers to it;
 *  - ids are unique and begin at 1; a parent is 0 (none) or the id of one of the same thread;
 *  - start_ns <= end_ns, and no end_ns lies beyond the delivery's end time;
 *  - activities of one thread nest strictly: a child lies within its parent, two siblings never
 *    cross. What had to be cut for that is flagged KPT_ACTIVITY_CLAMPED.
 *  - GC activities are calls like others: children of the call that was running. */
#ifndef KPT_ACTIVITY_H
#define KPT_ACTIVITY_H

#include "kpt_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In which order activities come. Each order delivers the same activities; ids differ as said. */
enum {
    /* Thread after thread; children before their parent; ids numbered in pre-order, so a child's id
     * is greater than its parent's, and the threads' id ranges do not overlap. */
    KPT_ORDER_THREAD = 0,
    /* All threads together, by time; each activity twice, as KPT_PHASE_BEGIN and KPT_PHASE_END. A
     * begin knows its start only: end_ns equals start_ns there, and flags that tell of the end are
     * not set. At equal times of one thread ends come before begins, unless the call took no time
     * at all. */
    KPT_ORDER_TIME = 1,
    /* All threads together, by start time, parents before children; ids 1, 2, 3 in that order. */
    KPT_ORDER_START = 2
};

enum { KPT_PHASE_COMPLETE = 0, KPT_PHASE_BEGIN = 1, KPT_PHASE_END = 2 };

enum {
    KPT_KIND_PYTHON = 1, /* a Python function, or one resume of a generator or coroutine */
    KPT_KIND_C = 2,      /* a function or method written in C */
    KPT_KIND_GC = 3      /* a garbage collection: value0 generation, value1 collected, value2 not */
};

enum {
    KPT_ACTIVITY_BEGAN_BEFORE = 1 << 0,  /* was open when tracing began; start_ns is that moment */
    KPT_ACTIVITY_ENDED_BY_STOP = 1 << 1, /* was open at stop; end_ns is the delivery's end time */
    KPT_ACTIVITY_CLAMPED = 1 << 2,       /* cut so that spans nest */
    KPT_ACTIVITY_RECOVERED = 1 << 3,     /* its end, or its start, was inferred */
    KPT_ACTIVITY_WATCHED = 1 << 4,       /* value0 is the host's answer, value1 the call id */
    KPT_ACTIVITY_MARKED = 1 << 5         /* something within it is marked or watched */
};

typedef struct kpt_activity {
    uint64_t id;
    uint64_t parent_id;
    int64_t start_ns;
    int64_t end_ns;
    uint32_t thread; /* a kpt_thread's index */
    uint32_t name;   /* a kpt_name's index */
    uint16_t kind;   /* KPT_KIND_* */
    uint16_t phase;  /* KPT_PHASE_* */
    uint32_t flags;  /* KPT_ACTIVITY_* */
    uint32_t line;   /* the line at which it (re)started; 0 = unknown */
    uint32_t depth;  /* 0 for a root */
    uint64_t value0; /* by kind and flags; 0 otherwise */
    uint64_t value1;
    uint64_t value2;
} kpt_activity;
#define KPT_ACTIVITY_V1_SIZE KPT_FIELD_END(kpt_activity, value2)

/* A function. Strings live until the tracer is destroyed. */
typedef struct kpt_name {
    uint32_t index;
    uint32_t first_line;
    kpt_str display;  /* as people know it: "file.py(8): inner", "<built-in function len>" */
    kpt_str function; /* the bare name */
    kpt_str qualname; /* with its classes; empty where the interpreter has none */
    kpt_str file;     /* empty for C functions */
} kpt_name;
#define KPT_NAME_V1_SIZE KPT_FIELD_END(kpt_name, file)

enum { KPT_THREAD_ENDED = 1 << 0 }; /* it ended before tracing did */

typedef struct kpt_thread {
    uint32_t index;
    uint32_t flags; /* KPT_THREAD_* */
    uint64_t os_tid;
    uint64_t host_value; /* the host's thread_attach answer, 0 without one */
    kpt_str name;        /* lives until the tracer is destroyed */
} kpt_thread;
#define KPT_THREAD_V1_SIZE KPT_FIELD_END(kpt_thread, name)

/* Read record i at (const char *)activities + i * activity_stride: a newer plugin's are longer. */
typedef struct kpt_batch {
    uint32_t struct_size;
    uint32_t order;
    const kpt_activity *activities;
    const kpt_name *names;
    const kpt_thread *threads;
    uint32_t activity_count;
    uint32_t activity_stride;
    uint32_t name_count;
    uint32_t name_stride;
    uint32_t thread_count;
    uint32_t thread_stride;
} kpt_batch;
#define KPT_BATCH_V1_SIZE KPT_FIELD_END(kpt_batch, thread_stride)

/* Receives one batch. Anything but KPT_OK ends the delivery, which then returns that status.
 * thread: the one that called get_events or snapshot, inside that call
 * GIL: not held by the plugin; may be held by the caller
 * ownership: the batch and its arrays are the plugin's, until it returns; strings until destroy
 * errors: any status of the host's; control calls on the delivering tracer are KPT_E_BUSY here
 * since: 1.0 */
typedef kpt_status (*kpt_batch_fn)(void *sink_ctx, const kpt_batch *batch);

/* Turns COUNT ticks, in non-decreasing order, into nanoseconds of the host's clock.
 * thread: the one that called get_events or snapshot, inside that call
 * GIL: not held by the plugin
 * ownership: both arrays are the plugin's, until it returns
 * errors: none; must be monotone
 * since: 1.0 */
typedef void (*kpt_convert_fn)(void *convert_ctx, const uint64_t *ticks, int64_t *ns,
                               uint64_t count);

enum {
    /* Only activities that are flagged KPT_ACTIVITY_MARKED or KPT_ACTIVITY_WATCHED, with the ids that
     * they have among all. Not in KPT_ORDER_TIME. */
    KPT_DELIVER_MARKED = 1 << 0
};

typedef struct kpt_delivery {
    uint32_t struct_size;
    uint32_t flags;         /* KPT_DELIVER_*; an unknown bit is refused */
    uint32_t order;         /* KPT_ORDER_* */
    uint32_t batch_size;    /* most activities in a batch; 0 = the plugin's choice */
    int64_t end_ns;         /* when open calls end; 0 = when tracing stopped (snapshot: now) */
    kpt_convert_fn convert; /* NULL = the plugin's own, to Unix time */
    void *convert_ctx;
    kpt_batch_fn sink;
    void *sink_ctx;
} kpt_delivery;
#define KPT_DELIVERY_V1_SIZE KPT_FIELD_END(kpt_delivery, sink_ctx)

#ifdef __cplusplus
}
#endif
#endif
