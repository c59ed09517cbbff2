/* kpt_activity.h: the records that a tracer delivers: finished calls, in batches, with the names
 * and threads that they refer to.
 *
 * Invariants of one delivery:
 *  - A batch contains a name or a thread no later than the first activity that refers to it.
 *  - Ids are unique and begin at 1. A parent is 0 (none) or the id of an activity of the same
 *    thread. The parts of one call (KPT_DELIVER_PARTS) share its id.
 *  - start_ns <= end_ns, and no end_ns is later than the delivery's end time.
 *  - Activities of one thread nest strictly: a child is within its parent, and two siblings never
 *    cross. An activity that was cut to make this true is flagged KPT_ACTIVITY_CLAMPED.
 *  - A GC activity is a call like any other: a child of the call that was running. */
#ifndef KPT_ACTIVITY_H
#define KPT_ACTIVITY_H

#include "kpt_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The order of a delivery. Each order delivers the same activities; ids differ as described
 * below. */
enum {
    /* One thread after another; children before their parent. Ids are numbered in pre-order, so a
     * child's id is greater than its parent's, and the id ranges of the threads do not overlap. */
    KPT_ORDER_THREAD = 0,
    /* All threads together, by time. Each activity is delivered twice, as KPT_PHASE_BEGIN and as
     * KPT_PHASE_END. A begin knows only its start: its end_ns equals start_ns, and flags that
     * describe the end are not set. At equal times of one thread, ends are delivered before begins,
     * unless the call took no time at all. */
    KPT_ORDER_TIME = 1,
    /* All threads together, by start time, parents before children. Ids are 1, 2, 3 in that
     * order. */
    KPT_ORDER_START = 2
};

enum { KPT_PHASE_COMPLETE = 0, KPT_PHASE_BEGIN = 1, KPT_PHASE_END = 2 };

enum {
    KPT_KIND_PYTHON = 1, /* a Python function, or one resume of a generator or coroutine */
    KPT_KIND_C = 2,      /* a function or method written in C */
    KPT_KIND_GC = 3,     /* a GC run: value0 generation, value1 collected, value2 uncollectable */
    /* A point that the host marked with the number value0. It is not a call, so its id is 0; its
     * parent is the call that contains it. Only with KPT_DELIVER_POINTS. Since 1.1. */
    KPT_KIND_POINT = 4,
    /* An operator of the host (begin_operator): a call like any other, with calls and operators
     * inside. value0 is its sequence number + 1, or 0 if it has none; value1 the host's number of
     * the thread that ran the forward operator, or 0; value2 the host's record_id. With
     * KPT_DELIVER_INPUTS, line is the index of a kpt_name that has its inputs, or 0 if it has none.
     * Since 1.2. */
    KPT_KIND_OPERATOR = 5,
    /* The begin and the end of a range of the host (begin_operator with a text). Neither is a call,
     * so the id is 0; the parent is the innermost call that contains the whole range. value0 is a
     * number that the begin and the end of one range share, among the ranges that are open at a
     * time. At a begin, the low byte of value1 is KPT_SCOPE_*, the next byte KPT_OPERATOR_*, and
     * value2 is record_id; with KPT_DELIVER_INPUTS, line is that of an operator. A begin has the text
     * as its name; the strings of that name are valid until the delivery returns. In KPT_ORDER_START a range is one activity, a begin with the
     * range's end as its end_ns. Only with KPT_DELIVER_RANGES. Since 1.2. */
    KPT_KIND_RANGE_BEGIN = 6,
    KPT_KIND_RANGE_END = 7
};

/* What an operator or a range is: the host's own division, with torch's numbers. Since 1.2. */
enum {
    KPT_SCOPE_FUNCTION = 0, /* an operator */
    KPT_SCOPE_BACKWARD = 1, /* a node of autograd */
    KPT_SCOPE_USER = 7,     /* a range that the user has named */
    KPT_SCOPE_MAX = 15
};

enum {
    KPT_ACTIVITY_BEGAN_BEFORE = 1 << 0,  /* was open when tracing began; start_ns is that time */
    KPT_ACTIVITY_ENDED_BY_STOP = 1 << 1, /* was open at stop; end_ns is the delivery's end time */
    KPT_ACTIVITY_CLAMPED = 1 << 2,       /* cut so that spans nest */
    KPT_ACTIVITY_RECOVERED = 1 << 3,     /* its end, or its start, was inferred */
    KPT_ACTIVITY_WATCHED = 1 << 4, /* value0 is on_watched_call's result, value1 the call id */
    KPT_ACTIVITY_MARKED = 1 << 5,  /* it contains a mark or a watched call */
    /* A further part of a call that was cut at a span of the host. It has the id, parent, depth,
     * line and values of the first part, and KPT_ACTIVITY_BEGAN_BEFORE and KPT_ACTIVITY_WATCHED if
     * the first part has them. The first part may be missing if not all activities are delivered.
     * Only with KPT_DELIVER_PARTS. Since 1.2. */
    KPT_ACTIVITY_CONTINUED = 1 << 6
};

typedef struct kpt_activity {
    uint64_t id;
    uint64_t parent_id;
    int64_t start_ns;
    int64_t end_ns;
    uint32_t thread; /* the index of a kpt_thread */
    uint32_t name;   /* the index of a kpt_name */
    uint16_t kind;   /* KPT_KIND_* */
    uint16_t phase;  /* KPT_PHASE_* */
    uint32_t flags;  /* KPT_ACTIVITY_* */
    uint32_t line;   /* the line at which it started or resumed; 0 = unknown */
    uint32_t depth;  /* 0 for a root */
    uint64_t value0; /* defined by kind and flags; 0 otherwise */
    uint64_t value1;
    /* Of an operator or a range: see its kind. For another call that began after the host's first mark of a point without a number: the line from
     * which it was called; 0 = unknown. */
    uint64_t value2;
} kpt_activity;
#define KPT_ACTIVITY_V1_SIZE KPT_FIELD_END(kpt_activity, value2)

enum {
    /* Not a name: function has the inputs of operators or ranges (kpt_inputs.h), and the other
     * strings are empty. Since 1.2. */
    KPT_NAME_INPUTS = 1 << 0
};

/* A function. The strings are valid until the tracer is destroyed. */
typedef struct kpt_name {
    uint32_t index;
    uint32_t first_line;
    kpt_str display;  /* for users: "file.py(8): inner", "<built-in function len>" */
    kpt_str function; /* the unqualified name */
    kpt_str qualname; /* with its classes; empty if the interpreter has none */
    kpt_str file;     /* empty for C functions, operators and ranges */
    uint32_t scope;   /* of an operator or a range: KPT_SCOPE_*; since 1.2 */
    uint32_t flags;   /* KPT_NAME_*; since 1.2 */
} kpt_name;
#define KPT_NAME_V1_SIZE KPT_FIELD_END(kpt_name, file)

enum { KPT_THREAD_ENDED = 1 << 0 }; /* the thread ended before tracing did */

typedef struct kpt_thread {
    uint32_t index;
    uint32_t flags; /* KPT_THREAD_* */
    uint64_t os_tid;
    /* The result of the host's thread_attach. If that is NULL: the number that the thread's operators
     * have (kpt_operator, since 1.2), or 0. */
    uint64_t host_value;
    kpt_str name; /* valid until the tracer is destroyed */
} kpt_thread;
#define KPT_THREAD_V1_SIZE KPT_FIELD_END(kpt_thread, name)

/* Record i is at (const char *)activities + i * activity_stride: records of a newer plugin are
 * longer. */
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

/* Receives one batch. Any status other than KPT_OK ends the delivery, which then returns that
 * status.
 * thread: the thread that called get_events or snapshot, inside that call
 * GIL: not held by the plugin; may be held by the caller
 * ownership: the batch and its arrays belong to the plugin and are valid until the sink returns,
 *     the strings until destroy
 * errors: any status that the host chooses; control calls on the delivering tracer return
 *     KPT_E_BUSY from here
 * since: 1.0 */
typedef kpt_status (*kpt_batch_fn)(void *sink_ctx, const kpt_batch *batch);

/* Converts COUNT ticks, in non-decreasing order, into nanoseconds of the host's clock.
 * thread: the thread that called get_events or snapshot, inside that call
 * GIL: not held by the plugin
 * ownership: both arrays belong to the plugin and are valid until convert returns
 * errors: none; the conversion must be monotone
 * since: 1.0 */
typedef void (*kpt_convert_fn)(void *convert_ctx, const uint64_t *ticks, int64_t *ns,
                               uint64_t count);

enum {
    /* Deliver only activities that are flagged KPT_ACTIVITY_MARKED or KPT_ACTIVITY_WATCHED, with
     * the ids that they have among all activities. Not in KPT_ORDER_TIME. */
    KPT_DELIVER_MARKED = 1 << 0,
    /* Also deliver points that the host marked with a number other than 0, at their position among
     * the activities and complete in both orders. Not in KPT_ORDER_START. Since 1.1. */
    KPT_DELIVER_POINTS = 1 << 1,
    /* A call that is cut at a span of the host continues after the cut as a further activity,
     * flagged KPT_ACTIVITY_CONTINUED. This part begins at the next event of its thread, or at the
     * next KPT_MARK_END of a span that is no longer open, and lasts until the call ends or is cut
     * again. It is the parent of the calls that it makes. A part that would take no time is not
     * delivered. A minimum duration applies to each part separately. Without this flag a cut call
     * ends at the cut. Since 1.2. */
    KPT_DELIVER_PARTS = 1 << 2,
    /* Also deliver the begins and ends of the host's ranges, at their positions among the activities
     * and complete in both orders. A range that is open when the delivery ends, or when events are
     * missing, ends there. Calls that would cross a range are cut, as at KPT_MARK_BEGIN. Without
     * this flag ranges change nothing. Since 1.2. */
    KPT_DELIVER_RANGES = 1 << 3,
    /* Also deliver the inputs of operators and, with KPT_DELIVER_RANGES, of ranges. Equal inputs are
     * one kpt_name with KPT_NAME_INPUTS, whose strings are valid until the delivery returns. Since
     * 1.2. */
    KPT_DELIVER_INPUTS = 1 << 4
};

typedef struct kpt_delivery {
    uint32_t struct_size;
    uint32_t flags;         /* KPT_DELIVER_*; an unknown bit is refused */
    uint32_t order;         /* KPT_ORDER_* */
    uint32_t batch_size;    /* maximum activities in a batch; 0 = the plugin's choice */
    int64_t end_ns;         /* when open calls end; 0 = when tracing stopped (snapshot: now) */
    kpt_convert_fn convert; /* NULL = the plugin's conversion, to Unix time */
    void *convert_ctx;
    kpt_batch_fn sink;
    void *sink_ctx;
} kpt_delivery;
#define KPT_DELIVERY_V1_SIZE KPT_FIELD_END(kpt_delivery, sink_ctx)

#ifdef __cplusplus
}
#endif
#endif
