/* active_tracers.h: the tracers that record, each with a bit in masks, and who of them records what. */
#ifndef KPTI_PYTHON_TRACER_THREADS_ACTIVE_TRACERS_H
#define KPTI_PYTHON_TRACER_THREADS_ACTIVE_TRACERS_H

#include "abi/impl/kpti_impl.h"

struct kpti_tracer;

/* Tracers that record at once. */
enum { KPTI_MOST_RECORDING = 29 };

/* "_locked": the session's lock is held; else it is taken. */

/* Gives TRACER a bit; 0: there is none left. */
int kpti_roster_add_locked(struct kpti_tracer *tracer);
/* Takes it away; the bit is the tracer's until nobody uses it any more. */
void kpti_roster_remove_locked(struct kpti_tracer *tracer);
/* The tracer whose bit is number I; NULL: none. */
struct kpti_tracer *kpti_roster_at_locked(int i);
int kpti_roster_is_empty_locked(void);
/* How often one was added. */
uint32_t kpti_roster_changes(void);

/* All tracers, if each records all code and all C calls there are, and nothing else; otherwise 0. */
uint32_t kpti_roster_every_locked(void);
/* Which of them record this function, of this file and module, whether one watches the code that has this
 * mark, and whether one wants to know the tasks of a function that IS_COROUTINE: a mask. */
uint32_t kpti_roster_mask(uint32_t function, kpt_str file, kpt_str module, uint32_t mark,
                          int is_coroutine);
/* Whether any of them filters by module, so that it is worth finding out. */
int kpti_roster_needs_module(void);

#endif
