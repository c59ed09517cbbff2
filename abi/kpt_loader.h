/* kpt_loader.h: an extension of the plugin that loads recordings from chunks. A host that stored
 * the chunks of a sink with KPT_CHUNKS_WHOLE, in a file or in another process, gets a stopped
 * tracer with the same recording. */
#ifndef KPT_LOADER_H
#define KPT_LOADER_H

#include "kpt_tracer.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KPT_EXT_LOADER "kpt.loader.v1" /* fills a kpt_loader */

/* Fills OUT with the next chunk, in the order in which the sink received the chunks. Returns
 * KPT_DECLINED if there are no more chunks.
 * thread: the thread that called load, inside that call
 * GIL: the plugin does not acquire it
 * ownership: the bytes belong to the host; their address is a multiple of 8, and they stay valid
 *     until the tracer is destroyed
 * errors: any status other than KPT_OK and KPT_DECLINED ends the load, and load returns that status
 * since: 1.1 */
typedef kpt_status (*kpt_next_chunk_fn)(void *next_ctx, kpt_chunk *out);

typedef struct kpt_load_args {
    uint32_t struct_size;
    uint32_t flags; /* none defined: must be 0 */
    kpt_next_chunk_fn next;
    void *next_ctx;
    uint64_t min_duration_ns; /* shorter calls are not delivered; 0 = as recorded */
} kpt_load_args;
#define KPT_LOAD_ARGS_V1_SIZE KPT_FIELD_END(kpt_load_args, min_duration_ns)

typedef struct kpt_loader {
    uint32_t struct_size;
    uint32_t flags; /* none defined */

    /* Makes a tracer in the state STOPPED. It delivers the activities in the chunks, and its
     * get_chunks delivers the chunks again. It cannot be restarted. Chunks may be missing at the
     * end, as after a crash; calls that are still open then end at the time of the last event of
     * the recording.
     * thread: any, also several at once; next runs on the same thread
     * GIL: not needed and not acquired: Python need not be loaded
     * ownership: args is borrowed during the call; the tracer belongs to the caller until destroy
     * errors: KPT_E_INVALID if the chunks are not a valid recording, KPT_E_UNSUPPORTED for a format
     *     that this plugin does not read, KPT_E_SIZE, KPT_E_MEMORY, KPT_E_LIMIT, KPT_E_HANDLE, the
     *     status that next returned
     * since: 1.1 */
    kpt_status (*load)(kpt_handle plugin, const kpt_load_args *args, kpt_tracer *out);
} kpt_loader;
#define KPT_LOADER_V1_SIZE KPT_FIELD_END(kpt_loader, load)

#ifdef __cplusplus
}
#endif
#endif
