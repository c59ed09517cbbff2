/* stack_trie.h: the trie of stacks. A stack is a number that identifies a node: a location and the
 * stack below it, which is the caller's. Stacks with the same outer frames share these nodes, so a
 * million stacks take little memory. Tracebacks, the memory tracer and the observer use the same
 * trie.
 *
 * Nodes are reference-counted, by their holders and by the nodes above them. A node without
 * references is put on the dead list without a lock, and is freed later, a bounded number of nodes
 * at a time.
 *
 *   number 0 is the empty stack
 *   location and below never change while a node has a holder: a holder reads them without a lock */
#ifndef KPTI_CORE_CALLSTACKS_STACK_TRIE_H
#define KPTI_CORE_CALLSTACKS_STACK_TRIE_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/callstacks/intern_table.h"

typedef struct kpti_stack_node {
    uint32_t chain; /* used by the intern table */
    uint32_t below;
    uint32_t location;
    uint32_t next_dead;     /* in the list of dead nodes */
    _Atomic uint32_t state; /* reference count and two bits: see stack_trie.c */
} kpti_stack_node;

extern kpti_intern_table kpti_stacks __attribute__((visibility("hidden")));

static inline uint32_t kpti_stack_below(uint32_t stack)
{
    return ((const kpti_stack_node *)kpti_intern_table_at(&kpti_stacks, stack))->below;
}

static inline uint32_t kpti_stack_place(uint32_t stack)
{
    return ((const kpti_stack_node *)kpti_intern_table_at(&kpti_stacks, stack))->location;
}

/* Guards the trie. Critical sections are short and call neither the host nor Python. */
void kpti_stacks_lock(void);
void kpti_stacks_unlock(void);

/* Finds or adds the stack with LOCATION on top of BELOW. Returns 0 if there is no memory. The stack
 * gets no new reference: it is valid until the next free_dead, so the caller retains it before it
 * unlocks. */
uint32_t kpti_stack_on_locked(uint32_t below, uint32_t location);

/* Adds a reference. The caller already has a reference, or the lock. */
void kpti_stack_retain(uint32_t stack);
/* Drops a reference. Acquires no lock. */
void kpti_stack_release(uint32_t stack);

/* While the trie is pinned no node is freed, so numbers stay valid without references. pin acquires
 * the trie's lock for a moment, so the caller must not hold it; unpin acquires no lock. */
void kpti_stacks_pin(void);
void kpti_stacks_unpin(void);

/* Whether there are nodes that can be freed now. Acquires no lock. */
int kpti_stacks_have_dead(void);
/* Frees up to MAX nodes that have no references. */
void kpti_stacks_free_dead_locked(uint64_t max);

/* Recounts the dead nodes in the child of a fork: a thread that the child lacks may have counted a
 * node that it did not put on the list. */
void kpti_stacks_forked_locked(void);

typedef struct kpti_stacks_count {
    uint64_t nodes;
    uint64_t dead; /* of these nodes */
    uint64_t bytes;
} kpti_stacks_count;
kpti_stacks_count kpti_stacks_counts(void);

#endif
