/* session_entry.h: lets one call of the user at a time into a session. */
#ifndef KPTI_HOSTS_STANDALONE_SESSION_SESSION_ENTRY_H
#define KPTI_HOSTS_STANDALONE_SESSION_SESSION_ENTRY_H

#include "hosts/standalone/session/session_state.h"

/* Returns KPT_OK if the caller is now inside an open session, with control; then it must leave. Otherwise returns
 * KPT_E_BUSY or KPT_E_HANDLE. */
kpt_status kpti_session_enter(kpti_session *session, kpti_session_error *error);
/* In the child of a fork: the service thread does not exist, and the stream belongs to the parent. */
void kpti_session_adopt_in_child(kpti_session *session);
/* Returns STATUS. */
kpt_status kpti_session_leave(kpti_session *session, kpt_status status);

#endif
