/* session_notes.h: takes the notes of a session: the marks of the program, and tasks of asyncio. */
#ifndef KPTI_HOSTS_STANDALONE_SESSION_SESSION_NOTES_H
#define KPTI_HOSTS_STANDALONE_SESSION_SESSION_NOTES_H

#include "hosts/standalone/session/session_types.h"
#include "writers/annotations/notes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Notes something of the user's, where the calling thread is. Its time and thread are filled in. Returns its
 * number; 0: it could not be kept, or the session does not record. Any thread, at any time. */
uint32_t kpti_session_note(kpti_session *session, kpti_note note);

/* Notes a task of asyncio; as the host table's on_task. */
uint64_t kpti_session_note_task(void *session, kpt_str name, kpt_str coroutine);

#ifdef __cplusplus
}
#endif
#endif
