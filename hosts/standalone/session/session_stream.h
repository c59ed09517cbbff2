/* session_stream.h: the .kpt file that is written while a session runs, and the recording of memory in it. Calls and memory
 * count ticks of one counter, so readers place both on one clock. */
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

/* --- a recording of memory in the same file ------------------------------------------------------ */

/* From now on the stream takes records of allocations. Returns KPT_E_STATE if the session writes no stream, or if the stream
 * has a recording of memory already: the numbers in its records would occur twice. */
kpt_status kpti_session_join_memory(kpti_session *session, kpti_session_error *error);

/* Writes a record to the stream. Any thread may call it, also in the middle of an allocation, but not in the child of a fork.
 * Returns 0, an errno, or ESHUTDOWN if the stream has ended. */
int kpti_session_put_memory(kpti_session *session, const void *record, uint64_t size);

/* Returns the path of the stream, complete or not, or NULL with an error if the path leads to another file. */
const char *kpti_session_memory_path(const kpti_session *session, kpti_session_error *error);

/* Appends the line about both recordings to the information about the program. The caller holds control. */
void kpti_session_describe_memory(kpti_session *session);

#endif
