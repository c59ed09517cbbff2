/* kpt_loader.h: recordings made of chunks again, an extension of the plugin: what a sink of whole
 * chunks has kept, in a file or another process, becomes a tracer that has stopped. */
#ifndef KPT_LOADER_H
#define KPT_LOADER_H

#include "kpt_tracer.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KPT_EXT_LOADER "kpt.loader.v1" /* fills a kpt_loader */

/* Fills OUT with the next chunk, in the order in which the sink got them. KPT_DECLINED: there are no more.
 * thread: the one that called load, inside that call
 * GIL: not taken by the plugin
 * ownership: the bytes stay the host's, on an address that 8 divides, until the tracer is destroyed
 * errors: any status but these two ends the load, which then returns it
 * since: 1.1 */
typedef kpt_status (*kpt_next_chunk_fn)(void *next_ctx, kpt_chunk *out);

typedef struct kpt_load_args {
    uint32_t struct_size;
    uint32_t flags; /* none defined: must be 0 */
    kpt_next_chunk_fn next;
    void *next_ctx;
    uint64_t min_duration_ns; /* shorter calls are not delivered; 0 = as when it was recorded */
} kpt_load_args;
#define KPT_LOAD_ARGS_V1_SIZE KPT_FIELD_END(kpt_load_args, min_duration_ns)

typedef struct kpt_loader {
    uint32_t struct_size;
    uint32_t flags; /* none defined */

    /* Makes a tracer that is STOPPED, and delivers what the chunks hold; get_chunks hands them on. It
     * can't be restarted. Chunks that are missing at the end, as after a crash, are fine: what their
     * threads had begun ends with the last event of all.
     * thread: any, also several at once; next runs on it
     * GIL: not needed and not taken: Python need not exist
     * ownership: args is borrowed during the call; the tracer is the caller's, until destroy
     * errors: KPT_E_INVALID where the chunks make no recording, KPT_E_UNSUPPORTED for a format that is
     *         not this plugin's, KPT_E_SIZE, KPT_E_MEMORY, KPT_E_LIMIT, KPT_E_HANDLE, what next answered
     * since: 1.1 */
    kpt_status (*load)(kpt_handle plugin, const kpt_load_args *args, kpt_tracer *out);
} kpt_loader;
#define KPT_LOADER_V1_SIZE KPT_FIELD_END(kpt_loader, load)

#ifdef __cplusplus
}
#endif
#endif
