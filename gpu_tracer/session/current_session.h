/* current_session.h: the recording that CUPTI's callbacks use. There is at most one at a time.
 *
 * The owner keeps its slot until it has read everything that threads hold, as their lists belong to one
 * recording at a time. It can be found only while it is also current. */
#ifndef KPTI_GPU_TRACER_SESSION_CURRENT_SESSION_H
#define KPTI_GPU_TRACER_SESSION_CURRENT_SESSION_H

#include "gpu_tracer/session/gpu_session.h"

/* Returns the current recording, which stays valid until leave, or NULL; do not call leave after NULL. Any
 * thread. */
kpti_gpu_session *kpti_session_enter(void);
void kpti_session_leave(void);

/* The same for callbacks inside CUDA's calls, which take no lock: a thread sets `inside` first (callback.c). */
extern _Atomic(kpti_gpu_session *) kpti_session_calls;

/* Makes S owner and current. Returns 0 if there is an owner. */
int kpti_session_become_current(kpti_gpu_session *s);
/* Ends being current, and waits until every thread that entered has left. */
void kpti_session_step_down(void);
/* Ends being owner. */
void kpti_session_leave_slot(void);
/* Called in the child of a fork. Returns 1 if S was the owner. */
int kpti_session_forget_owner(const kpti_gpu_session *s);

#endif
