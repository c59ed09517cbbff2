/* u32_set.h: a set of numbers, for the stacks and code locations that a thread has written to its journal. */
#ifndef KPTI_EXECUTION_TRACE_RECORD_U32_SET_H
#define KPTI_EXECUTION_TRACE_RECORD_U32_SET_H

#include "core/base/hash_table.h"

/* Starts as zeroes. */
typedef struct kpti_number_set {
    kpti_hash_table table;
} kpti_number_set;

/* NUMBER is not 0. */
int kpti_number_set_has(const kpti_number_set *set, uint32_t number);
/* Adds NUMBER, which is not in the set. Returns 0 if there is no memory. */
int kpti_number_set_add(kpti_number_set *set, uint32_t number);
void kpti_number_set_clear(kpti_number_set *set);

#endif
