/* kpt_memory.h: the memory tracer, an extension: who allocated what, and when.
 * Reached through the host's register_memory_tracer, or a tracer's get_extension(KPT_EXT_MEMORY).
 */
#ifndef KPT_MEMORY_H
#define KPT_MEMORY_H

#include "kpt_base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KPT_EXT_MEMORY "kpt.memory.v1" /* fills a kpt_memory_tracer */

typedef struct kpt_memory_args {
    uint32_t struct_size;
    uint32_t flags;        /* none defined: must be 0 */
    uint64_t sample_bytes; /* mean distance between samples; 0 = every allocation */
    uint64_t max_entries;  /* keep the last so many; 0 = all */
    uint32_t max_frames;   /* of a stack; 0 = all */
    uint32_t domains;      /* none defined: must be 0, which is all of them */
} kpt_memory_args;
#define KPT_MEMORY_ARGS_V1_SIZE KPT_FIELD_END(kpt_memory_args, domains)

typedef struct kpt_memory_ops {
    uint32_t struct_size;
    uint32_t flags; /* none defined */

    /* Begins to record; no change if it does already.
     * thread: any
     * GIL: taken, if Python is there and it is not held
     * ownership: none passes
     * errors: KPT_E_MEMORY
     * since: 1.0 */
    kpt_status (*start)(kpt_handle self);

    /* Ends recording; no change if it has ended. What was recorded is kept.
     * thread: any
     * GIL: not needed
     * ownership: none passes
     * errors: none
     * since: 1.0 */
    kpt_status (*stop)(kpt_handle self);

    /* Writes what is held to PATH, in the format that its suffix names. Running or not. A no-op
     * creates no file; a failed export leaves none.
     * thread: any
     * GIL: not needed
     * ownership: path is borrowed during the call
     * errors: KPT_E_INVALID for an empty path or one with a NUL, KPT_E_IO, KPT_E_UNSUPPORTED
     * since: 1.0 */
    kpt_status (*export_memory_history)(kpt_handle self, kpt_str path);

    /* Why the last call failed; on a no-op, at first, why it is one.
     * thread: any, at any time
     * GIL: not needed
     * ownership: as kpt_last_error_fn
     * errors: as kpt_last_error_fn
     * since: 1.0 */
    kpt_last_error_fn last_error;

    /* Stops it if it runs, and frees it.
     * thread: any
     * GIL: not needed
     * ownership: the handle is dead
     * errors: KPT_E_HANDLE, KPT_E_BUSY
     * since: 1.0 */
    kpt_status (*destroy)(kpt_handle self);
} kpt_memory_ops;
#define KPT_MEMORY_OPS_V1_SIZE KPT_FIELD_END(kpt_memory_ops, destroy)

typedef struct kpt_memory_tracer {
    uint32_t struct_size;
    uint32_t flags; /* KPT_OBJECT_* */
    const kpt_memory_ops *ops;
    kpt_handle self;
} kpt_memory_tracer;
#define KPT_MEMORY_TRACER_V1_SIZE KPT_FIELD_END(kpt_memory_tracer, self)

/* Makes a memory tracer, not yet recording. OUT as with kpt_tracer_make_fn.
 * thread: any, also several at once
 * GIL: not needed
 * ownership: args is borrowed during the call; the object is the caller's, until destroy
 * errors: KPT_DECLINED, KPT_E_INVALID, KPT_E_SIZE, KPT_E_UNSUPPORTED, KPT_E_MEMORY, KPT_E_LIMIT,
 *         KPT_E_HANDLE after detach
 * since: 1.0 */
typedef kpt_status (*kpt_memory_make_fn)(void *make_ctx, const kpt_memory_args *args,
                                         kpt_memory_tracer *out);

#ifdef __cplusplus
}
#endif
#endif
