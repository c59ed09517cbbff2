/* session_entry.h: admits one call of the user at a time to a session. */
#ifndef KPTI_HOSTS_STANDALONE_SESSION_SESSION_ENTRY_H
#define KPTI_HOSTS_STANDALONE_SESSION_SESSION_ENTRY_H

#include "hosts/standalone/session/session_state.h"

/* Returns KPT_OK if the caller is now inside an open session and holds control; it must then leave. Otherwise
 * returns KPT_E_BUSY or KPT_E_HANDLE. */
kpt_status kpti_session_enter(kpti_session *session, kpti_session_error *error);
/* Prepares the session in the child of a fork, where the service thread does not exist and the stream belongs
 * to the parent. */
void kpti_session_adopt_in_child(kpti_session *session);
/* Returns STATUS. */
kpt_status kpti_session_leave(kpti_session *session, kpt_status status);

#endif
