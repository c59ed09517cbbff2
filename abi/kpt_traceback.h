/* kpt_traceback.h: an extension of the plugin that captures combined tracebacks. A capture stores a
 * thread's position as a few numbers in a fraction of a microsecond; the numbers are symbolized
 * later, or never.
 *
 * A traceback keeps no Python object alive, and can be symbolized after its code, or Python itself,
 * is gone. No function here waits for the GIL unless its comment states so. The plugin holds no
 * lock while it calls the host's functions. */
#ifndef KPT_TRACEBACK_H
#define KPT_TRACEBACK_H

#include "kpt_base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KPT_EXT_TRACEBACK "kpt.traceback.v1" /* fills a kpt_traceback_maker */

/* The kinds of frames that gather captures, and how. */
enum {
    KPT_GATHER_PYTHON = 1 << 0,
    KPT_GATHER_SCRIPT = 1 << 1, /* the frames that script_frames reports */
    KPT_GATHER_NATIVE = 1 << 2, /* C and C++ */
    KPT_GATHER_WAIT = 1 << 3    /* gather may acquire the GIL, as described there */
};

enum {
    KPT_TRACEBACK_CUT = 1 << 0, /* frames are missing: beyond the depth, or for lack of memory */
    KPT_TRACEBACK_NO_PYTHON = 1 << 1 /* requested, but none could be read at once */
};

/* A captured traceback. The struct never grows: a host may keep a million of them. A struct of
 * zeros is the empty traceback. The numbers are valid only for the object that returned them, and
 * are reference-counted: the host calls retain for each copy, and release for each copy that it
 * drops. */
typedef struct kpt_traceback {
    uint32_t flags; /* KPT_TRACEBACK_* */
    uint32_t python;
    uint32_t script;
    uint32_t native;
} kpt_traceback;

/* The kinds of frames. */
enum {
    KPT_SYMBOL_PYTHON = 0,
    KPT_SYMBOL_SCRIPT = 1,
    KPT_SYMBOL_NATIVE = 2,
    KPT_SYMBOL_GENERATED = 3 /* reported by the host for the Python frame before it */
};

#define KPT_NO_COLUMN UINT32_MAX

/* A symbolized frame. */
typedef struct kpt_symbol {
    kpt_str name;
    kpt_str qualname; /* equal to name if there is none */
    kpt_str file;     /* of a native frame: its library */
    /* Of a native frame: its address. Of a Python frame: the offset of its instruction, in
     * bytes. */
    uint64_t address;
    uint32_t kind; /* KPT_SYMBOL_* */
    uint32_t first_line;
    uint32_t line; /* 0 = unknown */
    uint32_t end_line;
    uint32_t column; /* in bytes, from 0; KPT_NO_COLUMN = unknown */
    uint32_t end_column;
} kpt_symbol;
#define KPT_SYMBOL_V1_SIZE KPT_FIELD_END(kpt_symbol, end_column)

/* The range of one traceback in kpt_symbols.frames, innermost frame first. Equal tracebacks have
 * the same range. The struct never grows. */
typedef struct kpt_symbol_span {
    uint64_t first;
    uint64_t count;
} kpt_symbol_span;

typedef struct kpt_symbols {
    uint32_t struct_size;
    uint32_t symbol_stride;
    const kpt_symbol *symbols; /* each distinct frame once */
    uint64_t symbol_count;
    const uint32_t *frames; /* indices into symbols */
    uint64_t frame_count;
    const kpt_symbol_span *spans; /* one for each traceback, in the same order */
    uint64_t span_count;
} kpt_symbols;
#define KPT_SYMBOLS_V1_SIZE KPT_FIELD_END(kpt_symbols, span_count)

/* Receives the result of symbolize.
 * thread: the thread that called symbolize, inside that call
 * GIL: as symbolize's caller has it
 * ownership: everything belongs to the plugin, and is valid until the sink returns
 * errors: symbolize returns any status other than KPT_OK
 * since: 1.1 */
typedef kpt_status (*kpt_symbols_fn)(void *sink_ctx, const kpt_symbols *symbols);

/* Adds a frame of the host. The plugin copies the strings.
 * thread: the thread that the host's function runs on, inside that call
 * GIL: not needed
 * ownership: the strings belong to the host
 * errors: none: a frame for which there is no room is left out, and the traceback is flagged as cut
 * since: 1.1 */
typedef void (*kpt_add_frame_fn)(void *add_ctx, kpt_str name, kpt_str file, uint32_t line);

/* Implemented by the host: reports the frames of the host's own language on the calling thread,
 * innermost first.
 * thread: any, inside gather
 * GIL: as gather's caller has it
 * ownership: nothing is transferred
 * errors: none
 * since: 1.1 */
typedef void (*kpt_script_frames_fn)(void *script_ctx, kpt_add_frame_fn add, void *add_ctx);

/* Implemented by the host: reports the source of a line of generated Python code, if the host knows
 * it.
 * thread: the thread that called symbolize, inside that call
 * GIL: as symbolize's caller has it
 * ownership: the string belongs to the plugin
 * errors: none
 * since: 1.1 */
typedef void (*kpt_generated_fn)(void *generated_ctx, kpt_str file, uint32_t line,
                                 kpt_add_frame_fn add, void *add_ctx);

typedef struct kpt_tracebacks_args {
    uint32_t struct_size;
    uint32_t flags;                     /* none defined: must be 0 */
    kpt_script_frames_fn script_frames; /* or NULL */
    void *script_ctx;
    kpt_generated_fn generated; /* or NULL */
    void *generated_ctx;
} kpt_tracebacks_args;
#define KPT_TRACEBACKS_ARGS_V1_SIZE KPT_FIELD_END(kpt_tracebacks_args, generated_ctx)

typedef struct kpt_traceback_stats {
    uint32_t struct_size;
    uint32_t flags;      /* none defined */
    uint64_t stacks;     /* nodes in use in the stack trie, which the whole process shares */
    uint64_t dead;       /* nodes among them that are unreferenced, but not freed yet */
    uint64_t places;     /* distinct locations (code and instruction); never freed */
    uint64_t bytes_held; /* by nodes, locations and functions together */
} kpt_traceback_stats;
#define KPT_TRACEBACK_STATS_V1_SIZE KPT_FIELD_END(kpt_traceback_stats, bytes_held)

/* Implemented by the host: visits a Python object, as a visitproc does. A result other than 0 ends
 * the visits.
 * thread: the thread that called traverse, inside that call
 * GIL: held
 * ownership: the object is borrowed
 * errors: none
 * since: 1.1 */
typedef int (*kpt_visit_fn)(void *object, void *visit_ctx);

typedef struct kpt_tracebacks_ops {
    uint32_t struct_size;
    uint32_t flags; /* none defined */

    /* Captures the position of the calling thread. WHAT is a set of KPT_GATHER_*. DEPTH is the
     * maximum number of frames of each kind, innermost first; 0 = all. On a failure OUT is empty.
     * The call also frees a bounded part of the tracebacks that were released.
     * thread: any, also several at once and during every other call except destroy
     * GIL: not needed. A thread without a Python thread state gets no Python frames. A thread that
     *     has one but has released the GIL acquires it only with KPT_GATHER_WAIT, and only if the
     *     frames of this CPython cannot be read without the GIL; otherwise it gets no Python frames
     * ownership: the caller releases OUT
     * errors: KPT_E_INVALID, KPT_E_UNSUPPORTED for an unknown bit, KPT_E_HANDLE
     * since: 1.1 */
    kpt_status (*gather)(kpt_handle self, uint32_t what, uint32_t depth, kpt_traceback *out);

    /* Increments the reference counts of COUNT tracebacks: the caller has copied them, and will
     * release each of them once more.
     * thread: any, as gather
     * GIL: not needed
     * ownership: nothing is transferred
     * errors: KPT_E_INVALID, KPT_E_HANDLE
     * since: 1.1 */
    kpt_status (*retain)(kpt_handle self, const kpt_traceback *tracebacks, uint64_t count);

    /* Releases COUNT tracebacks and empties them. Acquires no lock and runs no Python code; their
     * memory is freed later.
     * thread: any, as gather
     * GIL: not needed
     * ownership: the tracebacks' numbers become invalid
     * errors: KPT_E_INVALID, KPT_E_HANDLE
     * since: 1.1 */
    kpt_status (*release)(kpt_handle self, kpt_traceback *tracebacks, uint64_t count);

    /* Symbolizes COUNT tracebacks, in one call of SINK. Python, script and native frames are merged
     * as torch merges them. The next Python frame precedes each native frame of Python's
     * interpreter. All script frames precede the first native frame of the script's interpreter.
     * The frames that are left follow at the end, among them the Python frames that share a native
     * frame with another Python frame, as they do since 3.11.
     * thread: any, as gather
     * GIL: not needed; generated and the sink run on the calling thread, with its GIL state
     * ownership: the tracebacks belong to the caller, and must not be released during the call
     * errors: KPT_E_INVALID, KPT_E_MEMORY, KPT_E_HANDLE, the status that the sink returned
     * since: 1.1 */
    kpt_status (*symbolize)(kpt_handle self, const kpt_traceback *tracebacks, uint64_t count,
                            kpt_symbols_fn sink, void *sink_ctx);

    /* Writes the Python frames of a traceback to OUT, innermost first, as numbers that never become
     * invalid. ROOM is the capacity of OUT; further frames are not written. *COUNT receives the
     * number of all frames.
     * thread: any, as gather
     * GIL: not needed
     * ownership: nothing is transferred
     * errors: KPT_E_INVALID, KPT_E_HANDLE
     * since: 1.1 */
    kpt_status (*get_frames)(kpt_handle self, const kpt_traceback *traceback, uint32_t *out,
                             uint64_t room, uint64_t *count);

    /* Symbolizes COUNT numbers from get_frames, as symbolize does. Each number is a separate
     * traceback, together with its generated frames.
     * thread: any, as gather
     * GIL: as symbolize
     * ownership: the numbers are borrowed during the call
     * errors: as symbolize; KPT_E_INVALID also for a number that get_frames never returned
     * since: 1.1 */
    kpt_status (*symbolize_frames)(kpt_handle self, const uint32_t *frames, uint64_t count,
                                   kpt_symbols_fn sink, void *sink_ctx);

    /* For a garbage collector: visits the objects that a traceback keeps alive. Tracebacks of this
     * plugin keep no objects alive.
     * thread: any, as gather
     * GIL: held
     * ownership: nothing is transferred
     * errors: KPT_E_INVALID, KPT_E_HANDLE
     * since: 1.1 */
    kpt_status (*traverse)(kpt_handle self, const kpt_traceback *traceback, kpt_visit_fn visit,
                           void *visit_ctx);

    /* Releases those objects. The traceback keeps all its frames.
     * thread: any, as gather
     * GIL: held
     * ownership: nothing is transferred
     * errors: KPT_E_INVALID, KPT_E_HANDLE
     * since: 1.1 */
    kpt_status (*clear)(kpt_handle self, kpt_traceback *traceback);

    /* Frees up to MOST unreferenced nodes of the stack trie (0 = all), and the calling thread's
     * caches. *LEFT, if LEFT is not NULL, receives the number of unreferenced nodes that are not
     * freed yet.
     * thread: any, as gather
     * GIL: not needed
     * ownership: nothing is transferred
     * errors: KPT_E_HANDLE
     * since: 1.1 */
    kpt_status (*free_dead)(kpt_handle self, uint64_t most, uint64_t *left);

    /* Fills OUT with the counters.
     * thread: any, as gather
     * GIL: not needed
     * ownership: nothing is transferred
     * errors: KPT_E_INVALID, KPT_E_SIZE, KPT_E_HANDLE
     * since: 1.1 */
    kpt_status (*get_stats)(kpt_handle self, kpt_traceback_stats *out);

    /* Returns the reason why the last call failed, except calls of gather, retain and release,
     * which leave no text. On a no-op it first returns the reason why the object is a no-op.
     * thread: any, at any time
     * GIL: not needed
     * ownership: as kpt_last_error_fn
     * errors: as kpt_last_error_fn
     * since: 1.1 */
    kpt_last_error_fn last_error;

    /* Frees the object. No other call may be inside it. Its tracebacks become invalid.
     * thread: any
     * GIL: not needed
     * ownership: the handle becomes invalid
     * errors: KPT_E_HANDLE, KPT_E_BUSY
     * since: 1.1 */
    kpt_status (*destroy)(kpt_handle self);
} kpt_tracebacks_ops;
#define KPT_TRACEBACKS_OPS_V1_SIZE KPT_FIELD_END(kpt_tracebacks_ops, destroy)

typedef struct kpt_tracebacks {
    uint32_t struct_size;
    uint32_t flags; /* KPT_OBJECT_* */
    const kpt_tracebacks_ops *ops;
    kpt_handle self;
} kpt_tracebacks;
#define KPT_TRACEBACKS_V1_SIZE KPT_FIELD_END(kpt_tracebacks, self)

typedef struct kpt_traceback_maker {
    uint32_t struct_size;
    uint32_t flags; /* none defined */

    /* Makes an object that captures tracebacks, or a no-op if Python is not loaded; the tracebacks
     * of a no-op have no frames. The whole process has one stack trie, in which objects share
     * common stacks.
     * thread: any, also several at once
     * GIL: not needed
     * ownership: args is borrowed during the call, its functions and contexts until destroy; the
     *     object belongs to the caller until destroy
     * errors: KPT_E_INVALID, KPT_E_SIZE, KPT_E_UNSUPPORTED, KPT_E_MEMORY, KPT_E_LIMIT, KPT_E_HANDLE
     * since: 1.1 */
    kpt_status (*make)(kpt_handle plugin, const kpt_tracebacks_args *args, kpt_tracebacks *out);
} kpt_traceback_maker;
#define KPT_TRACEBACK_MAKER_V1_SIZE KPT_FIELD_END(kpt_traceback_maker, make)

#ifdef __cplusplus
}
#endif
#endif
