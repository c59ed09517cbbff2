/* active_tracers.h: the active tracers (those that record now), each with one bit in masks, and the mask of
 * tracers that record a given function. */
#ifndef KPTI_PYTHON_TRACER_STATE_ACTIVE_TRACERS_H
#define KPTI_PYTHON_TRACER_STATE_ACTIVE_TRACERS_H

#include "abi/impl/kpti_impl.h"

struct kpti_tracer;

/* Not 0 if an active tracer records tasks. A greenlet counts as a kind of task. */
extern _Atomic int kpti_greenlets_wanted __attribute__((visibility("hidden")));

/* The maximum number of active tracers. */
enum { KPTI_MAX_TRACERS = 29 };

/* The caller of a "_locked" function holds the tracing lock; the other functions acquire it. */

/* Assigns a bit to TRACER. Returns 0 if no bit is free. */
int kpti_tracers_add_locked(struct kpti_tracer *tracer);
/* Removes TRACER. The tracer keeps its bit until no thread uses the bit any more. */
void kpti_tracers_remove_locked(struct kpti_tracer *tracer);
/* Returns the tracer with bit number I, or NULL. */
struct kpti_tracer *kpti_tracers_at_locked(int i);
/* Adds COUNT, which may be negative, to the number of tracers about to be added. */
void kpti_tracers_add_starting_locked(int count);
/* Whether no tracer records and at most OWN tracers are about to be added. OWN counts the caller's tracers. */
int kpti_tracers_are_idle_locked(int own);
/* Runs in the child of a fork, where no thread is starting a tracer. */
void kpti_tracers_forked_locked(void);
/* Returns how often a tracer was added. */
uint32_t kpti_tracers_changes(void);

/* Returns the mask of all active tracers if each of them records all code and all C calls and nothing else;
 * otherwise 0. */
uint32_t kpti_tracers_every_locked(void);
/* Returns the mask of tracers that record FUNCTION of this file and module. KPTI_MASK_WATCHED is set if a
 * tracer watches the code with MARK. KPTI_MASK_TASKS is set if IS_COROUTINE and a tracer in the mask
 * records tasks. KPTI_MASK_GENERAL is set if a tracer needs the general path. */
uint32_t kpti_tracers_mask(uint32_t function, kpt_str file, kpt_str module, uint32_t mark,
                           int is_coroutine);
/* Whether any active tracer filters by module; otherwise the caller need not determine the module. */
int kpti_tracers_needs_module(void);

#endif
