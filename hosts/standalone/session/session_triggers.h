/* session_triggers.h: a flight recorder writes itself when something is worth seeing: a slow step, a program in which
 * nothing happens any more, or a request. The service thread writes, so the program's threads do not wait. */
#ifndef KPTI_HOSTS_STANDALONE_SESSION_SESSION_TRIGGERS_H
#define KPTI_HOSTS_STANDALONE_SESSION_SESSION_TRIGGERS_H

#include "hosts/standalone/session/session_types.h"
#include "hosts/standalone/session/trigger_state.h"

/* Sets the triggers before the service thread starts. Returns the interval at which it must look, or 0. */
uint64_t kpti_triggers_begin(kpti_session *session, const kpti_session_options *options);

/* The service thread has started, or is about to end. */
void kpti_triggers_turn_on(kpti_session *session);
void kpti_triggers_turn_off(kpti_session *session);

/* Called by the service thread at intervals and after a request. DUMP writes a dump because of a reason. */
typedef void (*kpti_dump_fn)(kpti_session *session, const char *reason);
void kpti_triggers_look(kpti_session *session, kpti_dump_fn dump);

/* A step has ended: a span of NS, or the step of the optimizer KEY. */
void kpti_triggers_span(kpti_session *session, uint64_t ns);
void kpti_triggers_optimizer(kpti_session *session, uint64_t key);

/* Asks for a dump because of REASON, which another process had. */
void kpti_triggers_ask(kpti_session *session, const char *reason);

/* Returns the number of dumps that this process triggered itself, and copies the last reason to REASON, which has
 * KPTI_MAX_REASON bytes. */
uint32_t kpti_triggers_own(kpti_session *session, char *reason);

#endif
