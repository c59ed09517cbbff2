/* kpt_traceback.h: combined tracebacks, an extension of the plugin: where a thread is, gathered in a
 * fraction of a microsecond as a few numbers, and made readable later, or never.
 *
 * A traceback keeps no object of Python's alive, and can be symbolized when its code, or Python itself,
 * is gone. Nothing here waits for the GIL but where it says so, and the host's functions are called
 * with no lock held. */
#ifndef KPT_TRACEBACK_H
#define KPT_TRACEBACK_H

#include "kpt_base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KPT_EXT_TRACEBACK "kpt.traceback.v1" /* fills a kpt_traceback_maker */

/* What gather is to look at. */
enum {
    KPT_GATHER_PYTHON = 1 << 0,
    KPT_GATHER_SCRIPT = 1 << 1, /* what script_frames tells */
    KPT_GATHER_NATIVE = 1 << 2, /* C and C++ */
    KPT_GATHER_WAIT = 1 << 3    /* the GIL may be taken, as said there */
};

enum {
    KPT_TRACEBACK_CUT = 1 << 0,      /* there are more frames: beyond the depth, or the memory */
    KPT_TRACEBACK_NO_PYTHON = 1 << 1 /* asked for, but none could be read at once */
};

/* What was gathered. It never grows: a host may keep a million of them. Zeros are the empty one. The
 * numbers mean something to the object that gave them, and are counted: a copy is a retain, its end a
 * release. */
typedef struct kpt_traceback {
    uint32_t flags; /* KPT_TRACEBACK_* */
    uint32_t python;
    uint32_t script;
    uint32_t native;
} kpt_traceback;

/* What a frame is. */
enum {
    KPT_SYMBOL_PYTHON = 0,
    KPT_SYMBOL_SCRIPT = 1,
    KPT_SYMBOL_NATIVE = 2,
    KPT_SYMBOL_GENERATED = 3 /* what the host told of the Python frame before it */
};

#define KPT_NO_COLUMN UINT32_MAX

/* A frame in words. */
typedef struct kpt_symbol {
    kpt_str name;
    kpt_str qualname; /* as name where there is none */
    kpt_str file;     /* of a native frame its library */
    uint64_t address; /* of a native frame; of a Python frame its instruction's offset, in bytes */
    uint32_t kind;    /* KPT_SYMBOL_* */
    uint32_t first_line;
    uint32_t line; /* 0: unknown */
    uint32_t end_line;
    uint32_t column; /* in bytes, from 0; KPT_NO_COLUMN: unknown */
    uint32_t end_column;
} kpt_symbol;
#define KPT_SYMBOL_V1_SIZE KPT_FIELD_END(kpt_symbol, end_column)

/* One traceback's part of kpt_symbols.frames, innermost first. Equal tracebacks have the same part. It
 * never grows. */
typedef struct kpt_symbol_span {
    uint64_t first;
    uint64_t count;
} kpt_symbol_span;

typedef struct kpt_symbols {
    uint32_t struct_size;
    uint32_t symbol_stride;
    const kpt_symbol *symbols; /* each frame once */
    uint64_t symbol_count;
    const uint32_t *frames; /* indices into symbols */
    uint64_t frame_count;
    const kpt_symbol_span *spans; /* one for each traceback, in their order */
    uint64_t span_count;
} kpt_symbols;
#define KPT_SYMBOLS_V1_SIZE KPT_FIELD_END(kpt_symbols, span_count)

/* Receives what symbolize found.
 * thread: the one that called symbolize, inside that call
 * GIL: as symbolize's caller has it
 * ownership: all of it is the plugin's, and gone after the call
 * errors: any status but KPT_OK is what symbolize returns
 * since: 1.1 */
typedef kpt_status (*kpt_symbols_fn)(void *sink_ctx, const kpt_symbols *symbols);

/* Takes a frame from the host. The strings are copied.
 * thread: the one that the host's function runs on, inside that call
 * GIL: not needed
 * ownership: the strings stay the host's
 * errors: none: what finds no room is left out, and the traceback marked as cut
 * since: 1.1 */
typedef void (*kpt_add_frame_fn)(void *add_ctx, kpt_str name, kpt_str file, uint32_t line);

/* The host's: tells the frames of its own language that the calling thread is in, innermost first.
 * thread: any, inside gather
 * GIL: as gather's caller has it
 * ownership: none passes
 * errors: none
 * since: 1.1 */
typedef void (*kpt_script_frames_fn)(void *script_ctx, kpt_add_frame_fn add, void *add_ctx);

/* The host's: tells what a line of generated Python stands for, if it knows.
 * thread: the one that called symbolize, inside that call
 * GIL: as symbolize's caller has it
 * ownership: the string is the plugin's
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
    uint64_t stacks;     /* places in the tree of stacks that are taken; of the whole process */
    uint64_t dead;       /* of them, those that nobody needs, not yet given back */
    uint64_t places;     /* code and instruction, once each; they stay */
    uint64_t bytes_held; /* by all of it */
} kpt_traceback_stats;
#define KPT_TRACEBACK_STATS_V1_SIZE KPT_FIELD_END(kpt_traceback_stats, bytes_held)

/* The host's: visits an object of Python's, as a visitproc; not 0 ends the visits.
 * thread: the one that called traverse, inside that call
 * GIL: held
 * ownership: the object is borrowed
 * errors: none
 * since: 1.1 */
typedef int (*kpt_visit_fn)(void *object, void *visit_ctx);

typedef struct kpt_tracebacks_ops {
    uint32_t struct_size;
    uint32_t flags; /* none defined */

    /* Gathers where the calling thread is. WHAT: KPT_GATHER_*; DEPTH: the most frames of each kind, the
     * innermost ones; 0 = all. On a failure OUT is empty. A bounded part of what was released is given
     * back on the way.
     * thread: any, also several at once and beside all else but destroy
     * GIL: not needed. A thread that is none of Python's gets no Python frames. One that is, but has
     *      released the GIL, takes it only with KPT_GATHER_WAIT, and only where this CPython's frames
     *      can't be read without; else it gets none
     * ownership: OUT is to be released
     * errors: KPT_E_INVALID, KPT_E_UNSUPPORTED for an unknown bit, KPT_E_HANDLE
     * since: 1.1 */
    kpt_status (*gather)(kpt_handle self, uint32_t what, uint32_t depth, kpt_traceback *out);

    /* COUNT tracebacks are copied: they will be released once more.
     * thread: any, as gather
     * GIL: not needed
     * ownership: none passes
     * errors: KPT_E_INVALID, KPT_E_HANDLE
     * since: 1.1 */
    kpt_status (*retain)(kpt_handle self, const kpt_traceback *tracebacks, uint64_t count);

    /* Ends COUNT tracebacks and empties them. Takes no lock and runs nothing of Python: what has to be
     * done is done later.
     * thread: any, as gather
     * GIL: not needed
     * ownership: their numbers are dead
     * errors: KPT_E_INVALID, KPT_E_HANDLE
     * since: 1.1 */
    kpt_status (*release)(kpt_handle self, kpt_traceback *tracebacks, uint64_t count);

    /* Makes COUNT tracebacks readable, in one call of SINK: Python, script and native frames merged as
     * torch merges them. Before each native frame of Python's interpreter comes the next Python frame,
     * before the first one of the script's all of its frames; what is left comes at the end, as do the
     * Python frames that share a native one with another, which they do since 3.11.
     * thread: any, as gather
     * GIL: not needed; generated and the sink run in the calling thread as it is
     * ownership: the tracebacks stay the caller's, and must not be released meanwhile
     * errors: KPT_E_INVALID, KPT_E_MEMORY, KPT_E_HANDLE, what the sink answered
     * since: 1.1 */
    kpt_status (*symbolize)(kpt_handle self, const kpt_traceback *tracebacks, uint64_t count,
                            kpt_symbols_fn sink, void *sink_ctx);

    /* The Python frames of a traceback as numbers that stay good for ever, innermost first: the first
     * ROOM of them go to OUT, COUNT receives how many there are.
     * thread: any, as gather
     * GIL: not needed
     * ownership: none passes
     * errors: KPT_E_INVALID, KPT_E_HANDLE
     * since: 1.1 */
    kpt_status (*get_frames)(kpt_handle self, const kpt_traceback *traceback, uint32_t *out,
                             uint64_t room, uint64_t *count);

    /* As symbolize, of such numbers: each is a traceback of its own, with what was generated for it.
     * thread: any, as gather
     * GIL: as symbolize
     * ownership: the numbers are borrowed during the call
     * errors: as symbolize; KPT_E_INVALID also for a number that was never given
     * since: 1.1 */
    kpt_status (*symbolize_frames)(kpt_handle self, const uint32_t *frames, uint64_t count,
                                   kpt_symbols_fn sink, void *sink_ctx);

    /* For a garbage collector: visits the objects that a traceback keeps alive. Those of this plugin
     * keep none.
     * thread: any, as gather
     * GIL: held
     * ownership: none passes
     * errors: KPT_E_INVALID, KPT_E_HANDLE
     * since: 1.1 */
    kpt_status (*traverse)(kpt_handle self, const kpt_traceback *traceback, kpt_visit_fn visit,
                           void *visit_ctx);

    /* Lets go of those objects; the traceback has as many frames as before.
     * thread: any, as gather
     * GIL: held
     * ownership: none passes
     * errors: KPT_E_INVALID, KPT_E_HANDLE
     * since: 1.1 */
    kpt_status (*clear)(kpt_handle self, kpt_traceback *traceback);

    /* Gives back up to MOST places of what was released, 0 = all, and what the calling thread remembers to
     * be quicker; LEFT, if not NULL, receives how many are still to be.
     * thread: any, as gather
     * GIL: not needed
     * ownership: none passes
     * errors: KPT_E_HANDLE
     * since: 1.1 */
    kpt_status (*free_dead)(kpt_handle self, uint64_t most, uint64_t *left);

    /* Fills OUT.
     * thread: any, as gather
     * GIL: not needed
     * ownership: none passes
     * errors: KPT_E_INVALID, KPT_E_SIZE, KPT_E_HANDLE
     * since: 1.1 */
    kpt_status (*get_stats)(kpt_handle self, kpt_traceback_stats *out);

    /* Why the last call failed, but for gather's, retain's and release's, which leave no text; on a
     * no-op, at first, why it is one.
     * thread: any, at any time
     * GIL: not needed
     * ownership: as kpt_last_error_fn
     * errors: as kpt_last_error_fn
     * since: 1.1 */
    kpt_last_error_fn last_error;

    /* Frees it. Nobody is inside, and its tracebacks are dead.
     * thread: any
     * GIL: not needed
     * ownership: the handle is dead
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

    /* Makes an object that gathers; a no-op where there is no Python, whose tracebacks are all empty.
     * The tree of stacks is the process's: what objects share is there once.
     * thread: any, also several at once
     * GIL: not needed
     * ownership: args is borrowed during the call, its functions and contexts until destroy; the object
     *            is the caller's, until destroy
     * errors: KPT_E_INVALID, KPT_E_SIZE, KPT_E_UNSUPPORTED, KPT_E_MEMORY, KPT_E_LIMIT, KPT_E_HANDLE
     * since: 1.1 */
    kpt_status (*make)(kpt_handle plugin, const kpt_tracebacks_args *args, kpt_tracebacks *out);
} kpt_traceback_maker;
#define KPT_TRACEBACK_MAKER_V1_SIZE KPT_FIELD_END(kpt_traceback_maker, make)

#ifdef __cplusplus
}
#endif
#endif
