/* session_export.h: reads the recording of a session: into files, counts, profiles and tables. */
#ifndef KPTI_HOSTS_STANDALONE_SESSION_SESSION_EXPORT_H
#define KPTI_HOSTS_STANDALONE_SESSION_SESSION_EXPORT_H

#include "hosts/standalone/session/session_types.h"
#include "writers/annotations/task_profile.h"
#include "writers/gpu/gpu_log.h"
#include "writers/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes what is recorded, so far, to PATH, in the format that its suffix stands for. */
kpt_status kpti_session_write(kpti_session *session, const char *path,
                              const kpti_session_watch *watch, kpti_session_count *count,
                              kpti_session_error *error);

/* The same without a file, thread after thread: to SINK, where WATCH may be NULL; counted only; or by
 * function. */
kpt_status kpti_session_deliver(kpti_session *session, const kpti_session_watch *watch,
                                kpt_batch_fn sink, void *sink_ctx, kpti_session_error *error);
kpt_status kpti_session_count_calls(kpti_session *session, kpti_session_count *count,
                                    kpti_session_error *error);
kpt_status kpti_session_profile(kpti_session *session, const kpti_session_watch *watch,
                                kpti_profile *profile, kpti_session_error *error);

/* The same by task of asyncio: EACH hears of one after the other, with its row and its note, on the calling
 * thread. PROFILE is a new one. */
typedef void (*kpti_session_task_fn)(void *ctx, const kpti_task_row *row, const kpti_note *note);
kpt_status kpti_session_tasks(kpti_session *session, const kpti_session_watch *watch,
                              kpti_task_profile *profile, kpti_session_task_fn each, void *each_ctx,
                              kpti_session_error *error);

/* Has USE look at all that GPUs did, so far; what it returns is the answer. */
kpt_status kpti_session_with_gpu(kpti_session *session,
                                 kpt_status (*use)(void *ctx, const kpti_gpu_log *log), void *ctx,
                                 kpti_session_error *error);

/* Why no GPU activity is recorded; NULL: it is recorded, or was not asked for. After stop the reason may be another, as
 * CUDA may be initialised late. */
const char *kpti_session_gpu_reason(const kpti_session *session);

/* What is known of GPUs: how many kernels came, devices, what was dropped. Of a stream, and while it runs, the
 * log has no events. It is the session's; nobody may be inside. */
const kpti_gpu_log *kpti_session_gpu(const kpti_session *session);

/* As kpti_session_write, for a caller that holds control. */
kpt_status kpti_session_write_inside(kpti_session *session, const char *path,
                                     const kpti_session_watch *watch, kpti_session_count *count,
                                     kpti_session_error *error);

#ifdef __cplusplus
}
#endif
#endif
