/* session_queries.h: reads the recording of a session: counts, profiles, tables, and what stands out. */
#ifndef KPTI_HOSTS_STANDALONE_SESSION_SESSION_QUERIES_H
#define KPTI_HOSTS_STANDALONE_SESSION_SESSION_QUERIES_H

#include "hosts/standalone/session/session_types.h"
#include "writers/annotations/task_profile.h"
#include "writers/call_edges.h"
#include "writers/encode/text_builder.h"
#include "writers/gpu/gpu_launches.h"
#include "writers/operators/operator_table.h"
#include "writers/operators/operator_walk.h"
#include "writers/operators/step_finder.h"
#include "writers/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads the recording so far, one thread after the other: kpti_session_deliver calls SINK (WATCH may be NULL),
 * kpti_session_count_calls only counts, and kpti_session_profile sums up by function. */
kpt_status kpti_session_deliver(kpti_session *session, const kpti_session_watch *watch,
                                kpt_batch_fn sink, void *sink_ctx, kpti_session_error *error);
/* As kpti_session_deliver, with the ranges of the host, and calls that would cross them in parts. Delivers nothing of a
 * recording that cannot have ranges. */
kpt_status kpti_session_deliver_ranges(kpti_session *session, const kpti_session_watch *watch,
                                       kpt_batch_fn sink, void *sink_ctx,
                                       kpti_session_error *error);
kpt_status kpti_session_count_calls(kpti_session *session, kpti_session_count *count,
                                    kpti_session_error *error);
kpt_status kpti_session_profile(kpti_session *session, const kpti_session_watch *watch,
                                kpti_profile *profile, kpti_session_error *error);

/* The same by asyncio task. EACH is called on the calling thread with the row and the note of each task.
 * PROFILE is a new one. */
typedef void (*kpti_session_task_fn)(void *ctx, const kpti_task_row *row, const kpti_note *note);
kpt_status kpti_session_tasks(kpti_session *session, const kpti_session_watch *watch,
                              kpti_task_profile *profile, kpti_session_task_fn each, void *each_ctx,
                              kpti_session_error *error);

/* The same by pairs of functions. EDGES is a new one. */
kpt_status kpti_session_edges(kpti_session *session, const kpti_session_watch *watch,
                              kpti_call_edges *edges, kpti_session_error *error);

/* The same by operator of torch. TABLE is a new one. */
kpt_status kpti_session_operators(kpti_session *session, const kpti_session_watch *watch,
                                  kpti_operator_table *table, kpti_session_error *error);

/* Finds the steps. Initialises FINDER; the caller frees it, also after a failure. */
kpt_status kpti_session_steps(kpti_session *session, const kpti_session_watch *watch,
                              kpti_step_finder *finder, kpti_session_error *error);

/* Writes what stands out (writers/findings) to OUT, as JSON. The caller frees OUT, also after a failure. */
kpt_status kpti_session_explain(kpti_session *session, const kpti_session_watch *watch,
                                kpti_text_builder *out, kpti_session_error *error);

/* Calls USE with all GPU activity so far. Returns the status of USE. */
typedef kpt_status (*kpti_session_gpu_fn)(void *ctx, const kpti_gpu_log *log,
                                          kpti_gpu_launches *launches);
kpt_status kpti_session_with_gpu(kpti_session *session, kpti_session_gpu_fn use, void *ctx,
                                 kpti_session_error *error);

/* Returns the reason why no GPU activity is recorded, or NULL if it is recorded or was not requested. After
 * stop the reason may be different, since CUDA may be initialised late. */
const char *kpti_session_gpu_reason(const kpti_session *session);

/* Returns KPTI_GPU_ON or KPTI_GPU_CALLS, or 0 if no GPU activity is recorded. It differs from the user's choice if
 * the plugin is older. */
uint32_t kpti_session_recorded_gpu(const kpti_session *session);

/* Returns the GPU log: the number of kernels, the devices, and the dropped events. The log of a stream has no
 * events, since they are in the file; while the session runs, the log is incomplete. It belongs to the session.
 * No thread may be inside the session. */
const kpti_gpu_log *kpti_session_gpu(const kpti_session *session);

/* For callers that are inside the session. kpti_session_find is kpti_session_explain of a source that is open;
 * kpti_session_count_batch is a sink, of which CTX is a kpti_session_count. */
struct kpti_source;
kpt_status kpti_session_find(const struct kpti_source *from, kpti_operator_walk *walk,
                             const kpti_session_watch *watch, kpti_text_builder *out,
                             kpti_session_error *error);
kpt_status kpti_session_count_batch(void *ctx, const kpt_batch *batch);

#ifdef __cplusplus
}
#endif
#endif
