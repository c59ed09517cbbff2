/* session_background.h: the background work of a session: flushes of a stream, dumps of a flight recorder, and
 * the last flush at SIGTERM. */
#ifndef KPTI_HOSTS_STANDALONE_SESSION_SESSION_BACKGROUND_H
#define KPTI_HOSTS_STANDALONE_SESSION_SESSION_BACKGROUND_H

#include "hosts/standalone/session/session_types.h"

#ifdef __cplusplus
extern "C" {
#endif

kpt_status kpti_session_start_service(kpti_session *session, const kpti_session_options *options,
                                      kpti_session_error *error);
/* Ends the service thread and its crash watch before the session stops; a SIGTERM then waits until the stream
 * is complete. The caller does not hold control. */
void kpti_session_pause_service(kpti_session *session);
void kpti_session_end_service(kpti_session *session);

/* Writes to OUT a path that neither a dump of the session nor an existing file has. "out.json" becomes
 * out.1.json, out.2.json … */
void kpti_session_number_path(kpti_session *session, const char *path, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
