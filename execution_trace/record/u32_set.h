/* u32_set.h: which numbers there were: of stacks and places that a thread has told its journal. */
#ifndef KPTI_EXECUTION_TRACE_RECORD_U32_SET_H
#define KPTI_EXECUTION_TRACE_RECORD_U32_SET_H

#include <stdint.h>

/* Begins as zeroes. Invariant: at least half of the slots are empty. */
typedef struct kpti_number_set {
    uint32_t *slots; /* 0: empty */
    uint32_t capacity;
    uint32_t count;
} kpti_number_set;

/* NUMBER is not 0. */
int kpti_number_set_has(const kpti_number_set *set, uint32_t number);
/* 0: there is no memory, and it is not there. */
int kpti_number_set_add(kpti_number_set *set, uint32_t number);
void kpti_number_set_clear(kpti_number_set *set);

#endif
