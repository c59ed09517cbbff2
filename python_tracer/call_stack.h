/* call_stack.h: the calls of one thread that are open in a replay, the innermost on top.
 *
 * Invariants: base is a sentinel that no exit matches and whose id is 0, so top is always a record;
 * base <= top <= last; from base upwards, index grows and depth counts from 0. Records keep their
 * places until the stack grows. */
#ifndef KPTI_CALL_STACK_H
#define KPTI_CALL_STACK_H

#include "replay.h"

enum { KPTI_MISSES = 64 };

/* "Of the open calls that began before the call INDEX, none has KEY": what a search in vain has
 * learned, so that exits without enters on a deep stack do not cost a walk each. */
typedef struct kpti_miss {
    uint64_t index;
    uint32_t key;
    uint32_t spare;
} kpti_miss;

typedef struct kpti_call_stack {
    kpti_call_record *top;
    kpti_call_record *base;
    kpti_call_record *last; /* the last that there is room for */
    uint64_t room;
    const kpti_env *env;
    kpti_miss misses[KPTI_MISSES];
} kpti_call_stack;

/* These two answer 0 when there is no memory, and nothing has changed then. */
int kpti_call_stack_init(kpti_call_stack *stack, const kpti_env *env);
int kpti_call_stack_grow(kpti_call_stack *stack);
void kpti_call_stack_free(kpti_call_stack *stack);

/* The innermost open call with KEY; NULL if there is none. CALLS have begun so far. */
kpti_call_record *kpti_call_stack_find(kpti_call_stack *stack, uint32_t key, uint64_t calls);

#endif
