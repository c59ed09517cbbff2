/* kpt_observer.h: the execution-trace observer, an extension: the host reports its operators, the
 * observer records them with their inputs and writes the execution trace.
 * Reached through the host's register_observer, or a tracer's get_extension(KPT_EXT_OBSERVER).
 *
 * States:  make ──> CLOSED ──open──> OPEN ──start──> RECORDING ──stop──> OPEN ──close──> CLOSED
 * start and stop may be repeated into one file. Calls that change nothing answer KPT_OK; start
 * without a file answers KPT_E_STATE. */
#ifndef KPT_OBSERVER_H
#define KPT_OBSERVER_H

#include "kpt_base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KPT_EXT_OBSERVER "kpt.observer.v1" /* fills a kpt_observer */

typedef struct kpt_observer_args {
    uint32_t struct_size;
    uint32_t flags;     /* none defined: must be 0 */
    uint64_t max_bytes; /* held in memory before it is written; 0 = the plugin's choice */
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
    KPT_VALUE_OTHER = 9   /* text: the name of its type */
};

typedef struct kpt_tensor {
    uint32_t struct_size;
    uint32_t dimensions; /* of sizes and strides, each NULL where symbolic */
    uint64_t tensor_id;  /* equal for the same tensor while it lives */
    uint64_t storage_id;
    int64_t offset_elements; /* into the storage */
    int64_t element_count;
    uint64_t element_bytes;
    const int64_t *sizes;
    const int64_t *strides; /* in elements */
    const void *data;       /* host memory, readable during the call; NULL if it is not */
    kpt_str dtype;
    kpt_str device;
} kpt_tensor;
#define KPT_TENSOR_V1_SIZE KPT_FIELD_END(kpt_tensor, device)

/* Frozen, like kpt_str, as it nests: a new kind of value gets a new number. */
typedef struct kpt_value {
    uint32_t kind; /* KPT_VALUE_*: says which of the fields counts */
    uint32_t item_count;
    int64_t number;
    double real;
    kpt_str text;
    const kpt_tensor *tensor;
    const struct kpt_value *items;
} kpt_value;

typedef struct kpt_op {
    uint32_t struct_size;
    uint32_t scope; /* the host's: 0 function, 1 backward, 7 user annotation … */
    kpt_str name;
    kpt_str schema; /* empty where there is none */
    kpt_str kernel_backend;
    kpt_str kernel_file;
    uint64_t record_id;      /* the host's number of this call, which links it to a profile */
    uint64_t forward_thread; /* of a backward operator; 0 = none */
    uint64_t thread;         /* the host's number of this thread */
    int64_t sequence;        /* links forward and backward; -1 = none */
    const kpt_value *values; /* inputs at begin_op, outputs at end_op */
    uint64_t value_count;
} kpt_op;
#define KPT_OP_V1_SIZE KPT_FIELD_END(kpt_op, value_count)

typedef struct kpt_observer_ops {
    uint32_t struct_size;
    uint32_t flags; /* none defined */

    /* Names the file and begins it, replacing what was there; no change while one is open. A no-op
     * creates no file.
     * thread: any
     * GIL: not needed
     * ownership: path is borrowed during the call
     * errors: KPT_E_INVALID for an empty path or one with a NUL, KPT_E_IO; a failed open leaves the
     *         observer as it was
     * since: 1.0 */
    kpt_status (*open)(kpt_handle self, kpt_str path);

    /* Records operators from now on; no change if it does already.
     * thread: any
     * GIL: not needed
     * ownership: none passes
     * errors: KPT_E_STATE without a file
     * since: 1.0 */
    kpt_status (*start)(kpt_handle self);

    /* Stops recording; no change if it does not record.
     * thread: any
     * GIL: not needed
     * ownership: none passes
     * errors: none
     * since: 1.0 */
    kpt_status (*stop)(kpt_handle self);

    /* Stops, completes the file and closes it; no change if none is open.
     * thread: any
     * GIL: not needed
     * ownership: none passes
     * errors: KPT_E_IO
     * since: 1.0 */
    kpt_status (*close)(kpt_handle self);

    /* An operator begins. OP_ID receives the number to end it with: 0 if it is not recorded.
     * thread: the one that runs the operator; many at once, also beside control calls but destroy
     * GIL: not needed
     * ownership: op and all that it points to is borrowed during the call
     * errors: KPT_E_INVALID, KPT_E_SIZE
     * since: 1.0 */
    kpt_status (*begin_op)(kpt_handle self, const kpt_op *op, uint64_t *op_id);

    /* The operator OP_ID ends: with outputs, or ERROR's text if it raised. With OP_ID 0, of an
     * operator that was not recorded, nothing else is looked at.
     * thread: as begin_op
     * GIL: not needed
     * ownership: as begin_op
     * errors: KPT_E_INVALID, KPT_E_SIZE
     * since: 1.0 */
    kpt_status (*end_op)(kpt_handle self, uint64_t op_id, const kpt_op *op, kpt_str error);

    /* Why the last control call failed; on a no-op, at first, why it is one.
     * thread: any, at any time
     * GIL: not needed
     * ownership: as kpt_last_error_fn
     * errors: as kpt_last_error_fn
     * since: 1.0 */
    kpt_last_error_fn last_error;

    /* Closes it if it is open, and frees it.
     * thread: any; no begin_op or end_op may be in flight
     * GIL: not needed
     * ownership: the handle is dead
     * errors: KPT_E_HANDLE, KPT_E_BUSY
     * since: 1.0 */
    kpt_status (*destroy)(kpt_handle self);
} kpt_observer_ops;
#define KPT_OBSERVER_OPS_V1_SIZE KPT_FIELD_END(kpt_observer_ops, destroy)

typedef struct kpt_observer {
    uint32_t struct_size;
    uint32_t flags; /* KPT_OBJECT_* */
    const kpt_observer_ops *ops;
    kpt_handle self;
} kpt_observer;
#define KPT_OBSERVER_V1_SIZE KPT_FIELD_END(kpt_observer, self)

/* Makes an observer, with no file yet. OUT as with kpt_tracer_make_fn.
 * thread: any, also several at once
 * GIL: not needed
 * ownership: args is borrowed during the call; the object is the caller's, until destroy
 * errors: KPT_DECLINED, KPT_E_INVALID, KPT_E_SIZE, KPT_E_UNSUPPORTED, KPT_E_MEMORY, KPT_E_LIMIT,
 *         KPT_E_HANDLE after detach
 * since: 1.0 */
typedef kpt_status (*kpt_observer_make_fn)(void *make_ctx, const kpt_observer_args *args,
                                           kpt_observer *out);

#ifdef __cplusplus
}
#endif
#endif
