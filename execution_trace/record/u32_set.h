/* u32_set.h: a set of numbers, for the stacks and code locations that a thread has written to its journal. */
#ifndef KPTI_EXECUTION_TRACE_RECORD_U32_SET_H
#define KPTI_EXECUTION_TRACE_RECORD_U32_SET_H

#include <stdint.h>

/* Starts as zeroes. Invariant: at least half of the slots are empty. */
typedef struct kpti_number_set {
    uint32_t *slots; /* 0 marks an empty slot */
    uint32_t capacity;
    uint32_t count;
} kpti_number_set;

/* NUMBER is not 0. */
int kpti_number_set_has(const kpti_number_set *set, uint32_t number);
/* Returns 0 if there is no memory; NUMBER is then not in the set. */
int kpti_number_set_add(kpti_number_set *set, uint32_t number);
void kpti_number_set_clear(kpti_number_set *set);

#endif
