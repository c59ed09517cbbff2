/* function_table.h: the table of functions: what an event's id stands for. It owns the names, copied at first
 * sight; never a code object or a callable, so that both die on time.
 *
 * One table serves the process and only grows: a function is found again by its content (file, line,
 * names), so code that is made anew a million times takes one place.
 *
 *   id 0 is the function that could not be named     ids are below KPTI_MOST_NUMBER
 *   a function never changes once its id is out: readers need no lock and no GIL */
#ifndef KPTI_CORE_CALLSTACKS_FUNCTION_TABLE_H
#define KPTI_CORE_CALLSTACKS_FUNCTION_TABLE_H

#include "core/recording/recording.h"

/* Finds or adds a function. The strings are copied. 0 when there is no memory or no id left. */
uint32_t kpti_function_intern(const kpti_function_view *function);
/* A kpti_describe_fn; the context is not used. */
int kpti_function_describe(void *ctx, uint32_t id, kpti_function_view *out);
/* Ids that are out are below this. */
uint32_t kpti_function_count(void);
/* The memory that they take. */
uint64_t kpti_function_bytes(void);

/* Around a fork, so that the child finds the table whole. */
void kpti_functions_lock(void);
void kpti_functions_unlock(void);

#endif
