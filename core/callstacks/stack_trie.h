/* stack_trie.h: the tree of stacks. A stack is a number: a node, which is a place and the stack below it, its
 * callers'. Stacks that begin alike share that part, so a million of them take little. Tracebacks, the
 * memory tracer and the observer use the same tree.
 *
 * Nodes are counted: by their holders and by the nodes above them. One that nobody needs any more is put
 * aside without a lock, and given back later, a bounded number at a time.
 *
 *   number 0 is the empty stack
 *   place and below never change while somebody holds the node: who does reads without a lock */
#ifndef KPTI_CORE_CALLSTACKS_STACK_TRIE_H
#define KPTI_CORE_CALLSTACKS_STACK_TRIE_H

#include <stdatomic.h>
#include <stdint.h>

#include "core/callstacks/intern_table.h"

typedef struct kpti_stack_node {
    uint32_t chain; /* the pool's */
    uint32_t below;
    uint32_t place;
    uint32_t next_dead;     /* in the list of those put aside */
    _Atomic uint32_t state; /* holders, and two bits: see stack_trie.c */
} kpti_stack_node;

extern kpti_pool kpti_stacks __attribute__((visibility("hidden")));

static inline uint32_t kpti_stack_below(uint32_t stack)
{
    return ((const kpti_stack_node *)kpti_pool_at(&kpti_stacks, stack))->below;
}

static inline uint32_t kpti_stack_place(uint32_t stack)
{
    return ((const kpti_stack_node *)kpti_pool_at(&kpti_stacks, stack))->place;
}

/* Guards the tree. What is done under it is short; nothing of the host's or Python's is. */
void kpti_stacks_lock(void);
void kpti_stacks_unlock(void);

/* The stack with PLACE on top of BELOW, found or added; 0 without memory. It has no new holder: it is good
 * until the next free_dead, so the caller retains it before the unlock. */
uint32_t kpti_stack_on_locked(uint32_t below, uint32_t place);

/* One holder more. The caller has one already, or the lock. */
void kpti_stack_retain(uint32_t stack);
/* One holder less. No lock. */
void kpti_stack_release(uint32_t stack);

/* While somebody has pinned the tree nothing is given back: numbers stay good without holders. No lock. */
void kpti_stacks_pin(void);
void kpti_stacks_unpin(void);

/* Whether there are any to be given back. No lock. */
int kpti_stacks_have_dead(void);
/* Gives back up to MOST nodes that nobody holds. */
void kpti_stacks_free_dead_locked(uint64_t most);

/* In the child of a fork: a thread that it does not have may have counted one that it never put aside. */
void kpti_stacks_forked_locked(void);

typedef struct kpti_stacks_count {
    uint64_t nodes;
    uint64_t dead; /* of them */
    uint64_t bytes;
} kpti_stacks_count;
kpti_stacks_count kpti_stacks_counts(void);

#endif
