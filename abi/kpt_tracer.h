/* kpt_tracer.h: the tracer: its factory, its functions and its counters.
 *
 * States, as the host sees them:
 *
 *     make ──> RUNNING ──stop──> STOPPED ──restart──> RUNNING …      destroy: from either
 *
 * The comment of each function lists the states in which a call is legal. In another state the
 * function returns KPT_E_STATE and leaves a text. On a destroyed tracer it returns KPT_E_HANDLE.
 * From inside a sink of the same tracer, a chunk sink included, every function except mark and
 * last_error returns KPT_E_BUSY. After a fork the tracer in the child is STOPPED and empty; there
 * one stop, the first, is legal. */
#ifndef KPT_TRACER_H
#define KPT_TRACER_H

#include "kpt_activity.h"
#include "kpt_base.h"
#include "kpt_chunk.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    KPT_TRACE_NO_C_CALLS = 1 << 0,    /* record Python functions only */
    KPT_TRACE_ALL_CALLABLES = 1 << 1, /* also record types, partials and callable instances */
    KPT_TRACE_THIS_THREAD = 1 << 2,   /* record only the thread that calls make */
    /* The plugin reports asyncio's tasks to the host's on_task, and each resume of a task begins
     * with a point that has the number that on_task returned. Without on_task the flag has no
     * effect. Since 1.1. */
    KPT_TRACE_TASKS = 1 << 3
};

/* The kinds of marks that a host puts into the stream of calls. */
enum {
    /* The host does something here, such as run an operator. The calls that contain the point are
     * flagged KPT_ACTIVITY_MARKED. */
    KPT_MARK_POINT = 1,
    /* A span of the host begins. A call that contains the begin of the span but not its end would
     * cross the span; it is cut here and flagged KPT_ACTIVITY_CLAMPED. The other calls are marked
     * as at a point. */
    KPT_MARK_BEGIN = 2,
    /* The innermost open span with that number ends. A call that contains the end of the span but
     * not its begin is cut here and flagged KPT_ACTIVITY_CLAMPED. */
    KPT_MARK_END = 3
};

/* What the tracer does when a budget (max_events, max_bytes) is full. Neither choice discards the
 * whole recording. */
enum {
    KPT_FULL_STOP = 0, /* recording ends; the recording keeps the beginning */
    KPT_FULL_RING = 1  /* the oldest chunks are dropped; the recording keeps the end */
};

enum { KPT_FILTER_INCLUDE = 1, KPT_FILTER_EXCLUDE = 2 };
enum { KPT_MATCH_FILE_PREFIX = 1, KPT_MATCH_MODULE = 2, KPT_MATCH_FILE_GLOB = 3 };

/* Selects the code that is recorded. The last filter that matches decides. Code that no filter
 * matches is recorded, unless one of the filters is an include. */
typedef struct kpt_filter {
    uint32_t action; /* KPT_FILTER_* */
    uint32_t match;  /* KPT_MATCH_* */
    kpt_str pattern;
} kpt_filter;
#define KPT_FILTER_V1_SIZE KPT_FIELD_END(kpt_filter, pattern)

/* A code object whose calls the plugin reports to the host's on_watched_call. */
typedef struct kpt_watch {
    uint64_t watch; /* the host's number, passed to on_watched_call */
    void *code;     /* a PyCodeObject, borrowed during make; the host holds the GIL for it */
} kpt_watch;
#define KPT_WATCH_V1_SIZE KPT_FIELD_END(kpt_watch, code)

typedef struct kpt_tracer_args {
    uint32_t struct_size;
    uint32_t flags;      /* KPT_TRACE_*; an unknown bit is refused */
    uint32_t on_full;    /* KPT_FULL_* */
    uint32_t tool_id;    /* the sys.monitoring tool id to use, 1 to 5; 0 = the plugin's choice */
    uint64_t max_events; /* max_events and max_bytes are budgets; 0 = none */
    uint64_t max_bytes;
    uint64_t ring_ns; /* keep the last ring_ns nanoseconds; 0 = no ring */
    uint64_t ring_bytes;
    uint64_t min_duration_ns; /* shorter calls are not delivered */
    /* Levels of Python calls that are recorded, counted from the lowest point of a thread's stack
     * since its recording began; 0 = all. */
    uint32_t max_depth;
    uint32_t overhead_permille; /* code whose tracing would cost more is switched off; 0 = never */
    const kpt_filter *filters;
    uint32_t filter_count;
    uint32_t filter_stride;
    const kpt_watch *watches;
    uint32_t watch_count;
    uint32_t watch_stride;
    const kpt_chunk_sink *chunk_sink; /* NULL = the tracer keeps the chunks */
} kpt_tracer_args;
#define KPT_TRACER_ARGS_V1_SIZE KPT_FIELD_END(kpt_tracer_args, chunk_sink)

/* The parts of CPython that a tracer reads directly in memory if it knows their layout, instead of
 * calling CPython's functions. Since 1.2. */
enum {
    KPT_LAYOUT_FRAMES = 1 << 0,        /* running frames */
    KPT_LAYOUT_FRAME_OBJECTS = 1 << 1, /* frame objects */
    KPT_LAYOUT_TASKS = 1 << 2          /* the field of a thread that refers to its asyncio task */
};

/* Flags of an operator. Since 1.2. */
enum {
    KPT_OPERATOR_ASYNC = 1 << 0 /* its range may end on another thread, after others have begun */
};

/* An operator or a range of the host that begins. Since 1.2. */
typedef struct kpt_operator {
    uint32_t struct_size;
    uint32_t flags; /* KPT_OPERATOR_*; an unknown bit is refused */
    uint32_t name;  /* of an operator: from name_operator; 0 for a range */
    uint32_t scope; /* of a range: KPT_SCOPE_* (kpt_activity.h) */
    /* The name of a range, of which 252 bytes are kept. The recording has it beside the event, so
     * that a name that is used once leaves memory with the event. */
    kpt_str text;
    uint64_t sequence_plus_1; /* the sequence number + 1; 0 = none */
    uint64_t forward_thread; /* the host's number of the thread of the forward operator; 0 = none */
    uint64_t record_id;      /* the host's number of this operator; 0 = none */
    /* The host's number of the calling thread; 0 = none. If the host has no thread_attach, it is the
     * thread's host_value. forward_thread refers to it. */
    uint64_t thread;
    /* The inputs of the operator or range, in the format of kpt_inputs.h. The recording has them
     * beside the event, so that they leave memory with it, and equal ones mostly once. Bytes
     * after KPT_INPUTS_MOST_BYTES are not kept. Empty = none. */
    kpt_str inputs;
} kpt_operator;
#define KPT_OPERATOR_V1_SIZE KPT_FIELD_END(kpt_operator, thread)

enum { KPT_STATE_RUNNING = 1, KPT_STATE_STOPPED = 2 };

typedef struct kpt_stats {
    uint32_t struct_size;
    uint32_t state;  /* KPT_STATE_* */
    uint64_t events; /* events recorded: enters and exits */
    uint64_t bytes_held;
    uint64_t events_dropped;  /* lost to a budget, a ring or missing memory */
    uint64_t events_repaired; /* by replay: exits without enters, enters without exits … */
    uint64_t events_filtered; /* seen but not recorded, where the tracer can count them */
    uint64_t chunks_sealed;
    uint64_t chunks_refused; /* refused by the sink */
    uint64_t threads; /* threads, and greenlets, that the recording has events or open calls of */
    uint64_t threads_unreached;  /* known to exist, but not reachable through the interpreter */
    uint64_t functions_disabled; /* disabled by overhead_permille */
    /* The number of whole thread stacks that were walked, for any tracer, since this tracer was
     * made. A stack is walked where a thread's recording begins, and for each chunk of a ring.
     * Since 1.2. */
    uint64_t stacks_walked;
    /* KPT_LAYOUT_*: the parts whose layout in this CPython may differ from the layout that the
     * tracer expects. The tracer calls CPython's functions for them, which is slower. Since 1.2. */
    uint64_t layouts_unknown;
} kpt_stats;
#define KPT_STATS_V1_SIZE KPT_FIELD_END(kpt_stats, functions_disabled)

typedef struct kpt_tracer_ops {
    uint32_t struct_size;
    uint32_t flags; /* none defined */

    /* Ends recording. Returns when no callback of the host's table is in flight on another thread.
     * Legal: RUNNING.
     * thread: any, also inside thread_attach and on_watched_call
     * GIL: not needed and not acquired: stop may be called with it, without it, and from
     *     finalizers; if the caller holds the GIL, stop releases it while it waits
     * ownership: the recording belongs to the tracer
     * errors: KPT_E_STATE
     * since: 1.0 */
    kpt_status (*stop)(kpt_handle self);

    /* Starts recording again and appends to the recording that the tracer holds. Legal: STOPPED.
     * thread: any
     * GIL: acquired if not held
     * ownership: nothing is transferred
     * errors: KPT_E_STATE, KPT_E_MEMORY, KPT_E_BUSY if the interpreter's hook is in use
     * since: 1.0 */
    kpt_status (*restart)(kpt_handle self);

    /* Also records garbage collections, from now on and after each restart. A second call has no
     * effect. Legal: RUNNING, STOPPED.
     * thread: any
     * GIL: acquired if not held
     * ownership: nothing is transferred
     * errors: KPT_E_MEMORY
     * since: 1.0 */
    kpt_status (*register_gc_callback)(kpt_handle self);

    /* Delivers the recording. Each further call delivers the same recording, until restart or
     * destroy. Legal: STOPPED.
     * thread: any; convert and sink run on the same thread
     * GIL: not needed; the caller should release it for a long recording, as the call takes time
     * ownership: delivery is borrowed during the call; batches as kpt_batch_fn defines
     * errors: KPT_E_STATE, KPT_E_INVALID, KPT_E_SIZE, KPT_E_UNSUPPORTED, KPT_E_MEMORY, the sink's
     *     status
     * since: 1.0 */
    kpt_status (*get_events)(kpt_handle self, const kpt_delivery *delivery);

    /* Delivers the recording that the tracer holds now, without stopping it, as a flight recorder
     * does. Legal: RUNNING, STOPPED.
     * thread: any
     * GIL: not needed
     * ownership: as get_events
     * errors: as get_events, except KPT_E_STATE
     * since: 1.0 */
    kpt_status (*snapshot)(kpt_handle self, const kpt_delivery *delivery);

    /* Fills OUT with the counters. Legal: RUNNING, STOPPED.
     * thread: any
     * GIL: not needed
     * ownership: OUT belongs to the caller
     * errors: KPT_E_INVALID, KPT_E_SIZE
     * since: 1.0 */
    kpt_status (*get_stats)(kpt_handle self, kpt_stats *out);

    /* Returns the reason why the last call on this tracer failed. On a no-op it first returns the
     * reason why the tracer is a no-op. Always legal.
     * thread: any, at any time
     * GIL: not needed
     * ownership: as kpt_last_error_fn
     * errors: as kpt_last_error_fn
     * since: 1.0 */
    kpt_last_error_fn last_error;

    /* KPT_EXT_MEMORY, KPT_EXT_OBSERVER: makes an object that shares this tracer's clock and stacks.
     * Deprecated since 1.2, but it keeps working: new hosts make these objects with the factories
     * that the plugin registers (kpt_host.h). Legal: RUNNING, STOPPED.
     * thread: any
     * GIL: not needed
     * ownership: the object belongs to the caller and must be destroyed before the plugin is
     *     detached
     * errors: as kpt_get_extension_fn
     * since: 1.0 */
    kpt_get_extension_fn get_extension;

    /* Stops the tracer if it is running, and frees it and the recording that it holds. Legal:
     * RUNNING, STOPPED.
     * thread: any
     * GIL: not needed and not acquired
     * ownership: the handle becomes invalid; the strings of the tracer's batches are freed
     * errors: KPT_E_HANDLE, KPT_E_BUSY
     * since: 1.0 */
    kpt_status (*destroy)(kpt_handle self);

    /* Marks the current position of the calling thread. NUMBER distinguishes spans; its low 28 bits
     * are used. KPT_DELIVER_POINTS delivers the number of a point. The call has no effect on a
     * thread that has recorded nothing, and while the tracer does not record. Legal: RUNNING,
     * STOPPED.
     * thread: any, several at once; no thread may be inside mark during destroy
     * GIL: not needed and not acquired
     * ownership: nothing is transferred
     * errors: KPT_E_HANDLE, KPT_E_INVALID; last_error has no text for them
     * since: 1.0 */
    kpt_status (*mark)(kpt_handle self, uint32_t what, uint64_t number);

    /* Delivers the recording that the tracer holds now to SINK, as chunks, without stopping. The
     * tracer keeps every chunk, whatever status the sink returns. SINK's chunk_bytes is not used.
     * If SINK is NULL, the chunks go to the sink that the tracer was made with; the tracer forgets
     * the chunks that this sink accepts, as it does for full chunks. A call with NULL limits how
     * much a crash can lose. Legal: RUNNING, STOPPED.
     * thread: any; the sink runs on the same thread
     * GIL: not needed
     * ownership: as kpt_chunk_fn
     * errors: KPT_E_INVALID, also for NULL if the tracer has no sink; KPT_E_SIZE,
     *     KPT_E_UNSUPPORTED, KPT_E_MEMORY, the status that SINK returned
     * since: 1.1 */
    kpt_status (*get_chunks)(kpt_handle self, const kpt_chunk_sink *sink);

    /* Returns in *OUT the number for operators of this name and scope, which is never 0. Equal names
     * get equal numbers. A number is valid for every tracer of the plugin, for as long as the plugin
     * is loaded, so the host asks once per operator. The plugin keeps the name for as long: a name
     * that is used once belongs into a range. Legal: RUNNING, STOPPED.
     * thread: any, several at once
     * GIL: not needed and not acquired
     * ownership: name is borrowed during the call
     * errors: KPT_E_HANDLE, KPT_E_INVALID, KPT_E_MEMORY; last_error has no text for them
     * since: 1.2 */
    kpt_status (*name_operator)(kpt_handle self, kpt_str name, uint32_t scope, uint32_t *out);

    /* Records that an operator, or a range if it has a text, begins on the calling thread. *TOKEN
     * receives the number to pass to end_operator, or 0 if the operator is not recorded, as while
     * the tracer does not record. An operator is a call among the other calls of its thread, and must
     * not end before the operators that began within it on that thread. A range may cross calls and
     * operators. Both may end on another thread; an operator then ends at the next event of the
     * thread that it began on. The thread needs no Python: its first operator makes it a thread of
     * the recording. Legal: RUNNING, STOPPED.
     * thread: the thread that runs the operator; several at once; no thread may be inside during
     *     destroy
     * GIL: not needed and not acquired
     * ownership: op is borrowed during the call
     * errors: KPT_E_HANDLE, KPT_E_INVALID, KPT_E_SIZE, KPT_E_UNSUPPORTED for an unknown flag;
     *     last_error has no text for them; *TOKEN is then 0
     * since: 1.2 */
    kpt_status (*begin_operator)(kpt_handle self, const kpt_operator *op, uint64_t *token);

    /* Records the end of what begin_operator returned TOKEN for. 0 has no effect. An operator that
     * began in an earlier run has no end in this one.
     * thread: any; several at once; no thread may be inside during destroy
     * GIL: not needed and not acquired
     * ownership: nothing is transferred
     * errors: KPT_E_HANDLE; last_error has no text for it
     * since: 1.2 */
    kpt_status (*end_operator)(kpt_handle self, uint64_t token);
} kpt_tracer_ops;
#define KPT_TRACER_OPS_V1_SIZE KPT_FIELD_END(kpt_tracer_ops, mark)

typedef struct kpt_tracer {
    uint32_t struct_size;
    uint32_t flags; /* KPT_OBJECT_* */
    const kpt_tracer_ops *ops;
    kpt_handle self;
} kpt_tracer;
#define KPT_TRACER_V1_SIZE KPT_FIELD_END(kpt_tracer, self)

/* Makes a tracer and starts it. On KPT_OK the tracer is RUNNING and OUT refers to it. Otherwise
 * OUT's fields after struct_size are zero, and the plugin's last_error returns the reason.
 * thread: any, also several at once
 * GIL: acquired if Python is loaded and the caller does not hold it
 * ownership: args is borrowed during the call; the tracer belongs to the caller until destroy
 * errors: KPT_DECLINED, KPT_E_INVALID, KPT_E_SIZE, KPT_E_UNSUPPORTED, KPT_E_MEMORY, KPT_E_LIMIT,
 *     KPT_E_BUSY if the interpreter's hook is in use, KPT_E_HANDLE after detach
 * since: 1.0 */
typedef kpt_status (*kpt_tracer_make_fn)(void *make_ctx, const kpt_tracer_args *args,
                                         kpt_tracer *out);

#ifdef __cplusplus
}
#endif
#endif
