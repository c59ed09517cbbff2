/* session_stream.h: the .kpt file that is written while a session runs. */
#ifndef KPTI_HOSTS_STANDALONE_SESSION_SESSION_STREAM_H
#define KPTI_HOSTS_STANDALONE_SESSION_SESSION_STREAM_H

#include "hosts/standalone/session/session_state.h"

/* Returns 0 or an errno. */
int kpti_session_begin_stream(kpti_session *session, const char *path);
/* Implements kpt_chunk_fn. */
kpt_status kpti_session_sink(void *session, const kpt_chunk *chunk);
/* Writes the events of all threads to the stream. The caller holds control. */
void kpti_session_flush(kpti_session *session);
kpt_status kpti_session_end_stream(kpti_session *session, kpti_session_error *error);
/* Fails because the stream's path now names another file, or none. */
kpt_status kpti_session_fail_replaced(const kpti_session *session, kpti_session_error *error);

#endif
