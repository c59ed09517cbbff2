/* tracing_state.h: what all tracers of the process share: which of them record, the epoch that keeps caches
 * honest, the list of traced threads, and the hooks in the interpreter, which are there while anybody
 * records.
 *
 * One lock guards all cold state, here and in the streams. It is held for short and bounded work; no
 * Python runs under it, and nobody who holds it waits for another thread. fork takes it. */
#ifndef KPTI_PYTHON_TRACER_THREADS_TRACING_STATE_H
#define KPTI_PYTHON_TRACER_THREADS_TRACING_STATE_H

#include <stdatomic.h>

#include "abi/impl/kpti_impl.h"

struct kpti_thread;
struct kpti_tracer;

/* Moves whenever a cache may have become wrong. The upper half: the set of tracers changed, or what they
 * record; a thread synchronizes then. The lower half: a code object died (dead_code.h). One word, so that
 * the hot path needs one load. */
#define KPTI_ROSTER_STEP (UINT64_C(1) << 32)
extern _Atomic uint64_t kpti_session_epoch __attribute__((visibility("hidden")));
/* Moves the upper half. */
void kpti_session_bump(void);

void kpti_session_lock(void);
void kpti_session_unlock(void);

/* Begins a run of TRACER. The GIL, or a thread state, is held. */
kpt_status kpti_session_start(struct kpti_tracer *tracer, kpti_error *error);
/* Ends it: when this returns no other thread is inside the tracer's streams, or in a call to its host. No
 * GIL is needed. */
void kpti_session_stop(struct kpti_tracer *tracer);
/* Waits until no thread is in the middle of an append to TRACER's streams. No lock is held. */
void kpti_session_settle(struct kpti_tracer *tracer);
/* From now on TRACER records the lines that calls are made from. No GIL is needed. */
void kpti_session_want_callers(struct kpti_tracer *tracer);
/* The interpreter is about to end: nobody records any more, and the hooks are gone. The GIL is held. */
void kpti_session_exit(void);
/* It has ended: the same for what was begun since. */
void kpti_session_end(void);
/* In the child of a fork, with the lock held: it has one thread, and no tracer that records; each
 * tracer is told by the plugin. */
void kpti_session_forked_locked(void);
/* In the child of a fork, with the lock held: TRACER does not record any more. */
void kpti_session_forget_locked(struct kpti_tracer *tracer);

/* Whether nobody records, or is about to. */
int kpti_session_is_idle_locked(void);
/* Removes the hooks, if that is so. Needs the GIL or a thread state; no lock is held. */
void kpti_session_remove_if_idle(void);

/* A thread is new, or gone. */
void kpti_session_add_thread(struct kpti_thread *thread);
void kpti_session_remove_thread(struct kpti_thread *thread);

#endif
