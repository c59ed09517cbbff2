/* active_tracers.h: the tracers that record, each with a bit in masks, and who of them records what. */
#ifndef KPTI_PYTHON_TRACER_STATE_ACTIVE_TRACERS_H
#define KPTI_PYTHON_TRACER_STATE_ACTIVE_TRACERS_H

#include "abi/impl/kpti_impl.h"

struct kpti_tracer;

/* Whether a tracer that records wants to know of tasks, which greenlets are a kind of. */
extern _Atomic int kpti_greenlets_wanted __attribute__((visibility("hidden")));

/* Tracers that record at once. */
enum { KPTI_MAX_TRACERS = 29 };

/* "_locked": the tracing lock is held; else it is taken. */

/* Gives TRACER a bit; 0: there is none left. */
int kpti_tracers_add_locked(struct kpti_tracer *tracer);
/* Takes it away; the bit is the tracer's until nobody uses it any more. */
void kpti_tracers_remove_locked(struct kpti_tracer *tracer);
/* The tracer whose bit is number I; NULL: none. */
struct kpti_tracer *kpti_tracers_at_locked(int i);
/* COUNT more tracers (or fewer) are about to be added. */
void kpti_tracers_add_starting_locked(int count);
/* Whether no tracer records, and no more than OWN are about to: those that the caller answers for. */
int kpti_tracers_are_idle_locked(int own);
/* In the child of a fork: no thread is starting one. */
void kpti_tracers_forked_locked(void);
/* How often one was added. */
uint32_t kpti_tracers_changes(void);

/* All tracers, if each records all code and all C calls there are, and nothing else; otherwise 0. */
uint32_t kpti_tracers_every_locked(void);
/* Which of them record this function, of this file and module, whether one watches the code that has this
 * mark, and whether one wants to know the tasks of a function that IS_COROUTINE: a mask. */
uint32_t kpti_tracers_mask(uint32_t function, kpt_str file, kpt_str module, uint32_t mark,
                           int is_coroutine);
/* Whether any of them filters by module, so that it is worth finding out. */
int kpti_tracers_needs_module(void);

#endif
