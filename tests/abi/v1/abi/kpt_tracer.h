/* kpt_tracer.h: the tracer: how it is made, what can be asked of it, what it counts.
 *
 * States, as the host sees them:
 *
 *     make ──> RUNNING ──stop──> STOPPED ──restart──> RUNNING …      destroy: from either
 *
 * Each call below says in which state it is legal; in the other it answers KPT_E_STATE with a text,
 * on a destroyed tracer KPT_E_HANDLE, from inside a sink of the same tracer KPT_E_BUSY. A fork
 * leaves the child's tracer STOPPED and empty: there the first stop is legal, once. */
#ifndef KPT_TRACER_H
#define KPT_TRACER_H

#include "kpt_activity.h"
#include "kpt_base.h"
#include "kpt_chunk.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    KPT_TRACE_NO_C_CALLS = 1 << 0,    /* Python functions only */
    KPT_TRACE_ALL_CALLABLES = 1 << 1, /* types, partials and callable instances as well */
    KPT_TRACE_THIS_THREAD = 1 << 2    /* only the thread that calls make */
};

/* What a host marks in the stream of calls. */
enum {
    /* Something of the host's happens here, such as an operator: the calls that it happens in are
     * flagged KPT_ACTIVITY_MARKED. */
    KPT_MARK_POINT = 1,
    /* A span of the host's begins. Calls that contain its begin, but not its end, would cross it: they
     * are cut here, and flagged KPT_ACTIVITY_CLAMPED. The others are marked as at a point. */
    KPT_MARK_BEGIN = 2,
    /* The innermost open span of that number ends. Calls that contain its end, but not its begin, are
     * cut here, and flagged KPT_ACTIVITY_CLAMPED. */
    KPT_MARK_END = 3
};

/* What a full budget (max_events, max_bytes) turns into. Neither discards what was recorded. */
enum {
    KPT_FULL_STOP = 0, /* recording ends; the recording keeps the beginning */
    KPT_FULL_RING = 1  /* the oldest chunks go; the recording keeps the end */
};

enum { KPT_FILTER_INCLUDE = 1, KPT_FILTER_EXCLUDE = 2 };
enum { KPT_MATCH_FILE_PREFIX = 1, KPT_MATCH_MODULE = 2, KPT_MATCH_FILE_GLOB = 3 };

/* Which code is recorded. The last filter that matches decides; code that none matches is recorded,
 * unless there is an include among them. */
typedef struct kpt_filter {
    uint32_t action; /* KPT_FILTER_* */
    uint32_t match;  /* KPT_MATCH_* */
    kpt_str pattern;
} kpt_filter;
#define KPT_FILTER_V1_SIZE KPT_FIELD_END(kpt_filter, pattern)

/* A code object whose calls the host wants to hear of through on_watched_call. */
typedef struct kpt_watch {
    uint64_t watch; /* the host's own number, handed back */
    void *code;     /* a PyCodeObject, borrowed during make: the host holds the GIL for it */
} kpt_watch;
#define KPT_WATCH_V1_SIZE KPT_FIELD_END(kpt_watch, code)

typedef struct kpt_tracer_args {
    uint32_t struct_size;
    uint32_t flags;      /* KPT_TRACE_*; an unknown bit is refused */
    uint32_t on_full;    /* KPT_FULL_* */
    uint32_t tool_id;    /* the sys.monitoring tool to be, 1 to 5; 0 = the plugin's choice */
    uint64_t max_events; /* budgets; 0 = none */
    uint64_t max_bytes;
    uint64_t ring_ns; /* keep the last so many nanoseconds; 0 = no ring */
    uint64_t ring_bytes;
    uint64_t min_duration_ns; /* shorter calls are not delivered */
    uint32_t max_depth; /* levels of Python calls that are recorded, counted from the lowest point
                           of a thread's stack since its recording began; 0 = all */
    uint32_t overhead_permille; /* code that would cost more is switched off; 0 = never */
    const kpt_filter *filters;
    uint32_t filter_count;
    uint32_t filter_stride;
    const kpt_watch *watches;
    uint32_t watch_count;
    uint32_t watch_stride;
    const kpt_chunk_sink *chunk_sink; /* NULL = chunks are kept */
} kpt_tracer_args;
#define KPT_TRACER_ARGS_V1_SIZE KPT_FIELD_END(kpt_tracer_args, chunk_sink)

enum { KPT_STATE_RUNNING = 1, KPT_STATE_STOPPED = 2 };

typedef struct kpt_stats {
    uint32_t struct_size;
    uint32_t state;  /* KPT_STATE_* */
    uint64_t events; /* recorded: enters and exits */
    uint64_t bytes_held;
    uint64_t events_dropped;  /* lost to a budget, a ring or missing memory */
    uint64_t events_repaired; /* by replay: exits without enters, enters without exits … */
    uint64_t events_filtered; /* seen and not recorded, where that can be counted */
    uint64_t chunks_sealed;
    uint64_t chunks_refused;     /* by the sink */
    uint64_t threads;            /* that have recorded anything */
    uint64_t threads_unreached;  /* known to exist, but out of the interpreter's reach */
    uint64_t functions_disabled; /* by overhead_permille */
} kpt_stats;
#define KPT_STATS_V1_SIZE KPT_FIELD_END(kpt_stats, functions_disabled)

typedef struct kpt_tracer_ops {
    uint32_t struct_size;
    uint32_t flags; /* none defined */

    /* Ends recording. Returns when no callback is in flight. Legal: RUNNING.
     * thread: any
     * GIL: not needed and not taken: may be called with it, without it, and from finalizers
     * ownership: the recording stays the tracer's
     * errors: KPT_E_STATE
     * since: 1.0 */
    kpt_status (*stop)(kpt_handle self);

    /* Records again, appending to what is held. Legal: STOPPED.
     * thread: any
     * GIL: taken, if not held
     * ownership: none passes
     * errors: KPT_E_STATE, KPT_E_MEMORY, KPT_E_BUSY where the interpreter's hook is taken
     * since: 1.0 */
    kpt_status (*restart)(kpt_handle self);

    /* Records garbage collections too, from now on and after each restart. Again is no change.
     * Legal: RUNNING, STOPPED.
     * thread: any
     * GIL: taken, if not held
     * ownership: none passes
     * errors: KPT_E_MEMORY
     * since: 1.0 */
    kpt_status (*register_gc_callback)(kpt_handle self);

    /* Delivers the recording; again, until restart or destroy, the same one. Legal: STOPPED.
     * thread: any; convert and sink run on it
     * GIL: not needed; released by the caller for long recordings, as it takes time
     * ownership: delivery is borrowed during the call; batches as kpt_batch_fn says
     * errors: KPT_E_STATE, KPT_E_INVALID, KPT_E_SIZE, KPT_E_UNSUPPORTED, KPT_E_MEMORY, the sink's
     * since: 1.0 */
    kpt_status (*get_events)(kpt_handle self, const kpt_delivery *delivery);

    /* Delivers what is held now, without stopping: a flight recorder's dump.
     * Legal: RUNNING, STOPPED.
     * thread: any
     * GIL: not needed
     * ownership: as get_events
     * errors: as get_events, but for the state
     * since: 1.0 */
    kpt_status (*snapshot)(kpt_handle self, const kpt_delivery *delivery);

    /* Fills OUT with the counters. Legal: RUNNING, STOPPED.
     * thread: any
     * GIL: not needed
     * ownership: OUT is the caller's
     * errors: KPT_E_INVALID, KPT_E_SIZE
     * since: 1.0 */
    kpt_status (*get_stats)(kpt_handle self, kpt_stats *out);

    /* Why the last call on this tracer failed; on a no-op, at first, why it is one. Always legal.
     * thread: any, at any time
     * GIL: not needed
     * ownership: as kpt_last_error_fn
     * errors: as kpt_last_error_fn
     * since: 1.0 */
    kpt_last_error_fn last_error;

    /* KPT_EXT_MEMORY, KPT_EXT_OBSERVER: an object that shares this tracer's clock and stacks.
     * Legal: RUNNING, STOPPED.
     * thread: any
     * GIL: not needed
     * ownership: the object is the caller's, to be destroyed before the plugin is detached
     * errors: as kpt_get_extension_fn
     * since: 1.0 */
    kpt_get_extension_fn get_extension;

    /* Stops it if it runs, and frees it with all that it holds. Legal: RUNNING, STOPPED.
     * thread: any
     * GIL: not needed and not taken
     * ownership: the handle is dead, strings of its batches are gone
     * errors: KPT_E_HANDLE, KPT_E_BUSY
     * since: 1.0 */
    kpt_status (*destroy)(kpt_handle self);

    /* Marks where the calling thread is now. NUMBER tells spans apart, by its low 28 bits; a point has
     * none. Of a thread that has recorded nothing, and while the tracer does not record, nothing is
     * marked. Legal: RUNNING, STOPPED.
     * thread: any, several at once; none may be inside during destroy
     * GIL: not needed and not taken
     * ownership: none passes
     * errors: KPT_E_HANDLE, KPT_E_INVALID; last_error has no text for them
     * since: 1.0 */
    kpt_status (*mark)(kpt_handle self, uint32_t what, uint64_t number);
} kpt_tracer_ops;
#define KPT_TRACER_OPS_V1_SIZE KPT_FIELD_END(kpt_tracer_ops, mark)

typedef struct kpt_tracer {
    uint32_t struct_size;
    uint32_t flags; /* KPT_OBJECT_* */
    const kpt_tracer_ops *ops;
    kpt_handle self;
} kpt_tracer;
#define KPT_TRACER_V1_SIZE KPT_FIELD_END(kpt_tracer, self)

/* Makes a tracer and starts it: on KPT_OK it is RUNNING, and OUT names it. Otherwise OUT's fields
 * behind struct_size are zero, and the plugin's last_error has the text.
 * thread: any, also several at once
 * GIL: taken, if Python is there and it is not held
 * ownership: args is borrowed during the call; the tracer is the caller's, until destroy
 * errors: KPT_DECLINED, KPT_E_INVALID, KPT_E_SIZE, KPT_E_UNSUPPORTED, KPT_E_MEMORY, KPT_E_LIMIT,
 *         KPT_E_BUSY where the interpreter's hook is taken, KPT_E_HANDLE after detach
 * since: 1.0 */
typedef kpt_status (*kpt_tracer_make_fn)(void *make_ctx, const kpt_tracer_args *args,
                                         kpt_tracer *out);

#ifdef __cplusplus
}
#endif
#endif
