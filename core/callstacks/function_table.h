/* function_table.h: the table of functions, to which the ids in events refer. It owns copies of the
 * names, made when a function is added. It never holds a code object or a callable, so both are
 * freed when the program drops them.
 *
 * The process has one table, which only grows. A function is found by its content (file, line,
 * names), so code that is compiled again a million times takes one entry. Operators of hosts are in it, too: the host
 * interns each operator once.
 *
 *   id 0 is the function that could not be named     ids are below KPTI_MAX_NUMBER
 *   a function never changes after its id was returned: readers need no lock and no GIL */
#ifndef KPTI_CORE_CALLSTACKS_FUNCTION_TABLE_H
#define KPTI_CORE_CALLSTACKS_FUNCTION_TABLE_H

#include "core/recording/recording.h"

/* Finds or adds a function. Copies the strings. Returns 0 if there is no memory or no id left. */
uint32_t kpti_function_intern(const kpti_function_view *function);
/* A kpti_describe_fn; the context is not used. */
int kpti_function_describe(void *ctx, uint32_t id, kpti_function_view *out);
/* All ids returned so far are below this. */
uint32_t kpti_function_count(void);
/* The memory of all functions. */
uint64_t kpti_function_bytes(void);

/* Held around a fork, so that the table is consistent in the child. */
void kpti_functions_lock(void);
void kpti_functions_unlock(void);

#endif
