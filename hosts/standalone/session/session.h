/* session.h: the embedded host. It opens the plugin as every other host does and makes one tracer; or it opens a .kpt
 * file. session_export.h writes its recording, session_notes.h takes notes. Plain C without Python, so that it can be
 * tested and used without one; module.c makes it a Python module.
 *
 *   start ──> write, stats, … ──> stop ──> write, count, stats (any number of times) ──> free
 *   open ──────────────────────────────> write, count, stats (any number of times) ──> free
 *
 * A session is used by one call at a time; a second call, also from a callback of the first, returns KPT_E_BUSY. Notes
 * may be made at any time. No function here needs or takes the GIL, except that start makes a tracer: see the ABI's
 * make. */
#ifndef KPTI_HOSTS_STANDALONE_SESSION_SESSION_H
#define KPTI_HOSTS_STANDALONE_SESSION_SESSION_H

#include "hosts/standalone/session/session_types.h"
#include "writers/kpt/kpt_reader.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Opens PLUGIN, makes a tracer with ARGS and has it run. On KPT_OK *OUT is to be freed. */
kpt_status kpti_session_start(const char *plugin, const kpt_tracer_args *args,
                              const kpti_session_options *options, kpti_session **out,
                              kpti_session_error *error);

/* Opens a .kpt file; a damaged one only with RECOVER, up to where it is. */
kpt_status kpti_session_open(const char *plugin, const char *path, int recover, kpti_session **out,
                             kpti_session_error *error);

/* Why the tracer records nothing; NULL: it does record. */
const char *kpti_session_noop_reason(const kpti_session *session);

/* How the file of an opened session ends, and what it says of itself. */
kpti_kpt_state kpti_session_state(const kpti_session *session);
kpt_str kpti_session_info(const kpti_session *session);

/* Replaces what START's options said in info, also in the stream, where more is known by now. */
kpt_status kpti_session_set_info(kpti_session *session, kpt_str info, kpti_session_error *error);

/* Ends recording. A tracer that has ended by itself (at exit, in the child of a fork) is fine. A stream
 * that could not be written whole is KPT_E_IO, and stopped all the same. */
kpt_status kpti_session_stop(kpti_session *session, kpti_session_error *error);

/* Whether it records, in this process: not in the child of a fork. Any thread, at any time before free. */
int kpti_session_is_recording(const kpti_session *session);

kpt_status kpti_session_stats(kpti_session *session, kpt_stats *out, kpti_session_error *error);

/* Frees the recording; afterwards every call but free is refused with KPT_E_HANDLE. */
kpt_status kpti_session_close(kpti_session *session, kpti_session_error *error);

/* Frees the session, closed or not. Nobody may be inside. NULL is fine. */
void kpti_session_free(kpti_session *session);

#ifdef __cplusplus
}
#endif
#endif
