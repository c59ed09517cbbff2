/* kpt_observer.h: the execution-trace observer, an extension. The host reports its operators; the
 * observer records them with their inputs and writes the execution trace. A host gets the observer
 * through its register_observer, or through a tracer's get_extension(KPT_EXT_OBSERVER).
 *
 * States:  make ──> CLOSED ──open──> OPEN ──start──> RECORDING ──stop──> OPEN ──close──> CLOSED
 * start and stop may be repeated for one file. A call that changes nothing returns KPT_OK. start
 * without a file returns KPT_E_STATE. */
#ifndef KPT_OBSERVER_H
#define KPT_OBSERVER_H

#include "kpt_base.h"
#include "kpt_tape.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KPT_EXT_OBSERVER "kpt.observer.v1" /* fills a kpt_observer */

/* What an observer records in addition to the operators; since 1.1. */
enum {
    KPT_OBSERVER_STACKS = 1 << 0, /* the Python stack of each operator */
    KPT_OBSERVER_RANGES = 1 << 1  /* the minimum and maximum element of integral inputs */
};

typedef struct kpt_observer_args {
    uint32_t struct_size;
    uint32_t flags;     /* KPT_OBSERVER_*; no other bits */
    uint64_t max_bytes; /* held in memory before being written; 0 = the plugin's choice */
    /* Since 1.1: comma-separated names of operators. The observer writes the elements of their
     * integral inputs to files in the trace's resources folder. */
    kpt_str data_ops;
    uint32_t stack_depth; /* maximum frames of a stack, innermost first; 0 = all; since 1.1 */
    uint32_t spare;       /* must be 0 */
} kpt_observer_args;
#define KPT_OBSERVER_ARGS_V1_SIZE KPT_FIELD_END(kpt_observer_args, max_bytes)

enum {
    KPT_VALUE_NONE = 0,
    KPT_VALUE_BOOL = 1,   /* number */
    KPT_VALUE_INT = 2,    /* number */
    KPT_VALUE_DOUBLE = 3, /* real */
    KPT_VALUE_STRING = 4, /* text */
    KPT_VALUE_DEVICE = 5, /* text */
    KPT_VALUE_TENSOR = 6, /* tensor */
    KPT_VALUE_LIST = 7,   /* items */
    KPT_VALUE_TUPLE = 8,  /* items */
    KPT_VALUE_OTHER = 9,  /* text: the name of the value's type */
    KPT_VALUE_STREAM = 10 /* number: an INT without strides, such as a kernel's stream; since 1.1 */
};

/* The type of a tensor's elements, for code that reads them; since 1.1. */
enum {
    KPT_ELEMENTS_OTHER = 0,
    KPT_ELEMENTS_SIGNED = 1,  /* integers of element_bytes: 1, 2, 4 or 8 */
    KPT_ELEMENTS_UNSIGNED = 2 /* not bool */
};

typedef struct kpt_tensor {
    uint32_t struct_size;
    uint32_t dimensions; /* number of sizes and strides, each NULL if symbolic */
    uint64_t tensor_id;  /* equal for the same tensor while the tensor lives */
    uint64_t storage_id;
    int64_t offset_elements; /* into the storage */
    int64_t element_count;
    uint64_t element_bytes;
    const int64_t *sizes;
    const int64_t *strides; /* in elements */
    /* The first element, in host memory and readable during the call; or NULL. */
    const void *data;
    kpt_str dtype;
    kpt_str device;
    /* Since 1.1: equal id and generation mean the same tensor. If an id, such as an address, is
     * reused for another tensor, the generation differs. */
    uint64_t generation;
    uint64_t storage_generation;
    uint32_t elements; /* KPT_ELEMENTS_*; since 1.1 */
    uint32_t spare;
} kpt_tensor;
#define KPT_TENSOR_V1_SIZE KPT_FIELD_END(kpt_tensor, device)

/* Frozen, like kpt_str, because values nest. A new kind of value gets a new number. */
typedef struct kpt_value {
    uint32_t kind; /* KPT_VALUE_*: selects the field that is used */
    uint32_t item_count;
    int64_t number;
    double real;
    kpt_str text;
    const kpt_tensor *tensor;
    const struct kpt_value *items;
} kpt_value;

/* An attribute that the host adds to an operator, besides its values. The observer writes these
 * attributes after the trace's own attributes, in this order. Frozen, like kpt_value. Since 1.1. */
typedef struct kpt_attr {
    kpt_str name;
    kpt_str type;    /* as in the trace: "string", "uint64", "bool" … */
    kpt_value value; /* with "uint64", number is read as unsigned */
} kpt_attr;

/* What the host guarantees about an operator; since 1.2. */
enum {
    /* The operator begins and ends on one thread, within one call of a C function from Python, or
     * outside of Python. It ends before that call returns, and before the thread's PyThreadState is
     * freed. While it is open, the observer may reuse its stack for an operator that begins on the
     * same thread, in the same Python frame at the same instruction; for this check the observer
     * reads the PyThreadState. If the guarantee is false, the observer reads freed memory. A host
     * that cannot know leaves the flag out, and pays for capturing the stack of each operator. */
    KPT_OP_IN_ONE_CALL = 1 << 0
};

typedef struct kpt_op {
    uint32_t struct_size;
    uint32_t scope; /* the host's: 0 function, 1 backward, 7 user annotation … */
    kpt_str name;
    kpt_str schema; /* may be empty */
    kpt_str kernel_backend;
    kpt_str kernel_file;
    uint64_t record_id;      /* the host's number of this call, which links it to a profile */
    uint64_t forward_thread; /* of a backward operator; 0 = none */
    uint64_t thread;         /* the host's number of this thread */
    int64_t sequence;        /* links forward and backward operators; -1 = none */
    const kpt_value *values; /* inputs at begin_op, outputs at end_op */
    uint64_t value_count;
    const kpt_attr *attrs; /* at begin_op, and further ones at end_op; since 1.1 */
    uint64_t attr_count;
    /* The number that identifies this call in a profile; 0 = unknown. Since 1.1. */
    uint64_t external_id;
    uint32_t flags; /* at begin_op: KPT_OP_*; no other bits; since 1.2 */
    uint32_t spare; /* must be 0 */
} kpt_op;
#define KPT_OP_V1_SIZE KPT_FIELD_END(kpt_op, value_count)

/* Counters of the open file, or of the last file if none is open. */
typedef struct kpt_observer_stats {
    uint32_t struct_size;
    uint32_t flags;   /* none defined */
    uint64_t ops;     /* operators recorded */
    uint64_t dropped; /* operators not recorded for lack of room; those around them are complete */
    uint64_t journal_bytes; /* size of the journal, which holds them until the file is complete */
} kpt_observer_stats;
#define KPT_OBSERVER_STATS_V1_SIZE KPT_FIELD_END(kpt_observer_stats, journal_bytes)

typedef struct kpt_observer_ops {
    uint32_t struct_size;
    uint32_t flags; /* none defined */

    /* Creates the file PATH, replacing an existing one. Has no effect while a file is open. A no-op
     * creates no file.
     * thread: any
     * GIL: not needed
     * ownership: path is borrowed during the call
     * errors: KPT_E_INVALID for a path that is empty or contains a NUL, KPT_E_IO; a failed open
     *     does not change the observer
     * since: 1.0 */
    kpt_status (*open)(kpt_handle self, kpt_str path);

    /* Starts to record operators. Has no effect if the observer is recording already.
     * thread: any
     * GIL: not needed
     * ownership: nothing is transferred
     * errors: KPT_E_STATE without a file
     * since: 1.0 */
    kpt_status (*start)(kpt_handle self);

    /* Stops recording. Has no effect if the observer is not recording.
     * thread: any
     * GIL: not needed
     * ownership: nothing is transferred
     * errors: none
     * since: 1.0 */
    kpt_status (*stop)(kpt_handle self);

    /* Stops recording, completes the file and closes it. Has no effect if no file is open.
     * thread: any
     * GIL: not needed
     * ownership: nothing is transferred
     * errors: KPT_E_IO
     * since: 1.0 */
    kpt_status (*close)(kpt_handle self);

    /* Reports the begin of an operator. *OP_ID receives the number to pass to end_op, or 0 if the
     * operator is not recorded.
     * thread: the thread that runs the operator; several at once, also during any control call
     *     except destroy
     * GIL: not needed
     * ownership: op and everything that it points to is borrowed during the call
     * errors: KPT_E_INVALID, KPT_E_SIZE, KPT_E_UNSUPPORTED for unknown flags
     * since: 1.0 */
    kpt_status (*begin_op)(kpt_handle self, const kpt_op *op, uint64_t *op_id);

    /* Reports the end of the operator OP_ID, with its outputs, or with the text ERROR if it raised.
     * If OP_ID is 0, which means that the operator was not recorded, the other arguments are
     * ignored.
     * thread: as begin_op
     * GIL: not needed
     * ownership: as begin_op
     * errors: as begin_op
     * since: 1.0 */
    kpt_status (*end_op)(kpt_handle self, uint64_t op_id, const kpt_op *op, kpt_str error);

    /* Returns the reason why the last control call failed. On a no-op it first returns the reason
     * why the observer is a no-op.
     * thread: any, at any time
     * GIL: not needed
     * ownership: as kpt_last_error_fn
     * errors: as kpt_last_error_fn
     * since: 1.0 */
    kpt_last_error_fn last_error;

    /* Closes the file if one is open, and frees the observer.
     * thread: any; no begin_op or end_op may be in flight
     * GIL: not needed
     * ownership: the handle becomes invalid
     * errors: KPT_E_HANDLE, KPT_E_BUSY
     * since: 1.0 */
    kpt_status (*destroy)(kpt_handle self);

    /* Fills OUT with the counters, up to its struct_size.
     * thread: any
     * GIL: not needed
     * ownership: OUT belongs to the caller
     * errors: KPT_E_INVALID, KPT_E_SIZE
     * since: 1.1 */
    kpt_status (*get_stats)(kpt_handle self, kpt_observer_stats *out);

    /* Writes the trace PATH from JOURNAL, a file that an observer left behind when its process was
     * killed. Does not change or remove the journal. Legal in any state. A no-op cannot recover.
     * thread: any
     * GIL: not needed
     * ownership: the strings are borrowed during the call
     * errors: KPT_E_INVALID for a path that is empty or contains a NUL, or for a file that is not a
     *     journal; KPT_E_IO, KPT_E_MEMORY, KPT_E_UNSUPPORTED
     * since: 1.1 */
    kpt_status (*recover)(kpt_handle self, kpt_str journal, kpt_str path);

    /* Returns the calling thread's tape in *OUT, or NULL if there is none, as for a no-op. Legal in
     * any state. The host may write each operator to the tape instead of calling begin_op and
     * end_op for it. An operator must not be written to the tape if it has attributes or an
     * external_id, or if the observer reads its elements (KPT_OBSERVER_RANGES, data_ops): the trace
     * would lack them.
     * thread: any
     * GIL: not needed
     * ownership: the tape belongs to the observer, until destroy; each thread has its own tape, and
     *     the child of a fork has different tapes
     * errors: KPT_E_INVALID
     * since: 1.1 */
    kpt_status (*tape)(kpt_handle self, kpt_tape **out);
} kpt_observer_ops;
#define KPT_OBSERVER_OPS_V1_SIZE KPT_FIELD_END(kpt_observer_ops, destroy)

typedef struct kpt_observer {
    uint32_t struct_size;
    uint32_t flags; /* KPT_OBJECT_* */
    const kpt_observer_ops *ops;
    kpt_handle self;
} kpt_observer;
#define KPT_OBSERVER_V1_SIZE KPT_FIELD_END(kpt_observer, self)

/* Makes an observer, without a file. OUT is filled as by kpt_tracer_make_fn.
 * thread: any, also several at once
 * GIL: not needed
 * ownership: args is borrowed during the call; the object belongs to the caller until destroy
 * errors: KPT_DECLINED, KPT_E_INVALID, KPT_E_SIZE, KPT_E_UNSUPPORTED, KPT_E_MEMORY, KPT_E_LIMIT,
 *     KPT_E_HANDLE after detach
 * since: 1.0 */
typedef kpt_status (*kpt_observer_make_fn)(void *make_ctx, const kpt_observer_args *args,
                                           kpt_observer *out);

#ifdef __cplusplus
}
#endif
#endif
