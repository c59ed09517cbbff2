/* session_export.h: writes the recording of a session to files. */
#ifndef KPTI_HOSTS_STANDALONE_SESSION_SESSION_EXPORT_H
#define KPTI_HOSTS_STANDALONE_SESSION_SESSION_EXPORT_H

#include "hosts/standalone/session/session_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the recording so far to PATH, in the format of its suffix. */
kpt_status kpti_session_write(kpti_session *session, const char *path,
                              const kpti_session_watch *watch, kpti_session_count *count,
                              kpti_session_error *error);

/* kpti_session_write for a caller that holds control. */
kpt_status kpti_session_write_inside(kpti_session *session, const char *path,
                                     const kpti_session_watch *watch, kpti_session_count *count,
                                     kpti_session_error *error);

#ifdef __cplusplus
}
#endif
#endif
