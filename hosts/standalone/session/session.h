/* session.h: the embedded host. It opens the plugin as every other host does and makes one tracer, or it opens
 * a .kpt file. session_export.h writes its recording, session_notes.h records notes. Plain C without Python, so
 * that it can be tested and used without Python; module.c makes it a Python module.
 *
 *   start ──> write, stats, … ──> stop ──> write, count, stats (any number of times) ──> free
 *   open ──────────────────────────────> write, count, stats (any number of times) ──> free
 *
 * A session is used by one call at a time; a second call, also from a callback of the first, returns
 * KPT_E_BUSY. Notes may be made at any time. No function here needs or acquires the GIL, except that start
 * makes a tracer: see the ABI's make. */
#ifndef KPTI_HOSTS_STANDALONE_SESSION_SESSION_H
#define KPTI_HOSTS_STANDALONE_SESSION_SESSION_H

#include "hosts/standalone/session/session_types.h"
#include "writers/kpt/kpt_reader.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens PLUGIN, makes a tracer with ARGS and starts it. After KPT_OK the caller frees *OUT. */
kpt_status kpti_session_start(const char *plugin, const kpt_tracer_args *args,
                              const kpti_session_options *options, kpti_session **out,
                              kpti_session_error *error);

/* Opens a .kpt file. A damaged file is refused without RECOVER, and is read up to the damage with it. */
kpt_status kpti_session_open(const char *plugin, const char *path, int recover, kpti_session **out,
                             kpti_session_error *error);

/* Returns the reason why the tracer records nothing, or NULL if it records. */
const char *kpti_session_noop_reason(const kpti_session *session);

/* Returns how the file of an opened session ends, and the information stored in it. */
kpti_kpt_state kpti_session_state(const kpti_session *session);
/* Returns how many of its records have a kind that this kpytrace does not know; *KIND receives one of these kinds. */
uint64_t kpti_session_skipped(const kpti_session *session, uint32_t *kind);
kpt_str kpti_session_info(const kpti_session *session);

/* Chunks in the .kpt files that an opened session writes are not packed. Call it before another thread uses the session.
 */
void kpti_session_no_compress(kpti_session *session);

/* The Chrome JSON that an opened session writes has no ids, and short names. Call it before another thread uses the
 * session. */
void kpti_session_compact(kpti_session *session);

/* Replaces the info of start's options, also in the stream, when more is known. */
kpt_status kpti_session_set_info(kpti_session *session, kpt_str info, kpti_session_error *error);

/* Ends recording. It is no error if the tracer has already ended (at exit, in the child of a fork). Returns
 * KPT_E_IO if the stream could not be written completely; the session is stopped all the same. */
kpt_status kpti_session_stop(kpti_session *session, kpti_session_error *error);

/* Returns 1 if it records in this process; a child of a fork returns 0. Any thread may call it at any time
 * before free. */
int kpti_session_is_recording(const kpti_session *session);

/* Returns the tracer, for another host in the process that passes operators to it. */
kpt_tracer kpti_session_tracer(kpti_session *session);

kpt_status kpti_session_stats(kpti_session *session, kpt_stats *out, kpti_session_error *error);

/* Frees the recording. Every later call except free returns KPT_E_HANDLE. */
kpt_status kpti_session_close(kpti_session *session, kpti_session_error *error);

/* Frees the session, closed or not. No thread may be inside it. SESSION may be NULL. */
void kpti_session_free(kpti_session *session);

#ifdef __cplusplus
}
#endif
#endif
