/* session_notes.h: records the notes of a session: the program's marks, and asyncio tasks. */
#ifndef KPTI_HOSTS_STANDALONE_SESSION_SESSION_NOTES_H
#define KPTI_HOSTS_STANDALONE_SESSION_SESSION_NOTES_H

#include "hosts/standalone/session/session_types.h"
#include "writers/annotations/notes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Records a note of the user at the calling thread's position. Fills in its time and thread. Returns its
 * number, or 0 if it could not be kept or the session does not record. Any thread may call it at any time. */
uint32_t kpti_session_note(kpti_session *session, kpti_note note);

/* Records an asyncio task. Has the signature of the host table's on_task. */
uint64_t kpti_session_note_task(void *session, kpt_str name, kpt_str coroutine);

#ifdef __cplusplus
}
#endif
#endif
