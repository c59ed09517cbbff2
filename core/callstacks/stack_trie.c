#include "core/callstacks/stack_trie.h"

#include <pthread.h>

#include "core/base/hash.h"
#include "core/base/lock_owner.h"

/* A node's state: its reference count, whether it is on the dead list, and whether it is free. A
 * count that has reached STICKY stays there, and the node is never freed. */
#define QUEUED  (UINT32_C(1) << 31)
#define IS_FREE (UINT32_C(1) << 30)
#define STICKY  (UINT32_C(1) << 29)
#define HOLDERS (IS_FREE - 1)

static uint64_t hash_pair(uint32_t below, uint32_t location)
{
    return kpti_hash_mix(kpti_hash_mix(0, below), location);
}

static uint64_t hash_of(const void *record)
{
    const kpti_stack_node *n = record;
    return hash_pair(n->below, n->location);
}

static int same(const void *record, const void *wanted)
{
    const kpti_stack_node *a = record;
    const kpti_stack_node *b = wanted;
    return a->below == b->below && a->location == b->location;
}

kpti_intern_table kpti_stacks = {
    .record_size = sizeof(kpti_stack_node), .max = INT32_MAX, .hash = hash_of, .same = same};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static kpti_lock_owner lock_owner;
/* Head of the list of dead nodes since the last take_dead_locked, which takes the whole list at
 * once. */
static _Atomic uint32_t put_aside;
static uint32_t dead; /* the list taken from put_aside; guarded by the lock */
static _Atomic int64_t dead_count;
static _Atomic uint32_t pins;

void kpti_stacks_lock(void)
{
    kpti_lock_acquire(&lock, &lock_owner);
}

void kpti_stacks_unlock(void)
{
    kpti_lock_release(&lock, &lock_owner);
}

static kpti_stack_node *node_at(uint32_t stack)
{
    return kpti_intern_table_at(&kpti_stacks, stack);
}

uint32_t kpti_stack_on_locked(uint32_t below, uint32_t location)
{
    const kpti_stack_node wanted = {.below = below, .location = location};
    const uint64_t hash = hash_pair(below, location);
    uint32_t stack = kpti_intern_table_find(&kpti_stacks, &wanted, hash);
    kpti_assert(kpti_lock_is_mine(&lock_owner) && location);
    if (stack) return stack;
    stack = kpti_intern_table_add(&kpti_stacks, &wanted, hash);
    if (stack) kpti_stack_retain(below);
    return stack;
}

void kpti_stack_retain(uint32_t stack)
{
    _Atomic uint32_t *state;
    if (!stack) return;
    state = &node_at(stack)->state;
    kpti_assert(!(atomic_load_explicit(state, memory_order_relaxed) & IS_FREE));
    if ((atomic_load_explicit(state, memory_order_relaxed) & HOLDERS) < STICKY)
        atomic_fetch_add_explicit(state, 1, memory_order_relaxed);
}

/* Puts a node on the dead list. The thread that set QUEUED does so, once. */
static void put_dead(uint32_t stack)
{
    kpti_stack_node *node = node_at(stack);
    uint32_t head = atomic_load_explicit(&put_aside, memory_order_relaxed);
    atomic_fetch_add_explicit(&dead_count, 1, memory_order_relaxed);
    do {
        node->next_dead = head;
    } while (!atomic_compare_exchange_weak_explicit(&put_aside, &head, stack, memory_order_release,
                                                    memory_order_relaxed));
}

/* The thread that drops the last reference sets QUEUED in the same step. From then on the node
 * cannot be freed, and its number cannot be reused, until the node has been on the list. */
void kpti_stack_release(uint32_t stack)
{
    kpti_stack_node *node;
    uint32_t state;
    uint32_t next;
    if (!stack) return;
    node = node_at(stack);
    state = atomic_load_explicit(&node->state, memory_order_relaxed);
    do {
        if ((state & HOLDERS) >= STICKY) return;
        kpti_assert(state & HOLDERS && !(state & IS_FREE)); /* the caller's reference */
        next = state - 1;
        if (!(next & HOLDERS)) next |= QUEUED;
    } while (!atomic_compare_exchange_weak_explicit(&node->state, &state, next,
                                                    memory_order_acq_rel, memory_order_relaxed));
    if (next == QUEUED && !(state & QUEUED)) put_dead(stack);
}

void kpti_stacks_pin(void)
{
    /* The lock makes the thread wait for a free_dead in progress. */
    kpti_stacks_lock();
    atomic_fetch_add_explicit(&pins, 1, memory_order_relaxed);
    kpti_stacks_unlock();
}

void kpti_stacks_unpin(void)
{
    kpti_assert(atomic_load_explicit(&pins, memory_order_relaxed));
    atomic_fetch_sub_explicit(&pins, 1, memory_order_relaxed);
}

int kpti_stacks_have_dead(void)
{
    return atomic_load_explicit(&dead_count, memory_order_relaxed) > 0 &&
           atomic_load_explicit(&pins, memory_order_relaxed) == 0;
}

/* Removes the next node from the list and returns it, or 0 if the list is empty. */
static uint32_t take_dead_locked(void)
{
    const uint32_t stack =
        dead ? dead : atomic_exchange_explicit(&put_aside, 0, memory_order_acquire);
    if (!stack) return 0;
    kpti_assert(atomic_load_explicit(&node_at(stack)->state, memory_order_relaxed) & QUEUED);
    dead = node_at(stack)->next_dead;
    atomic_fetch_sub_explicit(&dead_count, 1, memory_order_relaxed);
    return stack;
}

/* Marks a node that was on the list as free, unless it has got a new reference. Returns whether it
 * is free. */
static int is_free(kpti_stack_node *node)
{
    uint32_t state = QUEUED;
    uint32_t next = IS_FREE;
    while (!atomic_compare_exchange_weak_explicit(&node->state, &state, next, memory_order_acq_rel,
                                                  memory_order_relaxed))
        next = state == QUEUED ? IS_FREE : state & ~QUEUED;
    return next == IS_FREE;
}

void kpti_stacks_free_dead_locked(uint64_t max)
{
    uint32_t stack;
    kpti_assert(kpti_lock_is_mine(&lock_owner));
    if (atomic_load_explicit(&pins, memory_order_relaxed)) return;
    while (max-- > 0 && (stack = take_dead_locked())) {
        kpti_stack_node *node = node_at(stack);
        const uint32_t below = node->below;
        if (!is_free(node)) continue;
        kpti_intern_table_remove(&kpti_stacks, stack);
        kpti_stack_release(below);
    }
}

void kpti_stacks_forked_locked(void)
{
    int64_t count = 0;
    kpti_assert(kpti_lock_is_mine(&lock_owner));
    for (uint32_t s = dead; s; s = node_at(s)->next_dead)
        count++;
    for (uint32_t s = atomic_load(&put_aside); s; s = node_at(s)->next_dead)
        count++;
    atomic_store(&dead_count, count);
}

kpti_stacks_count kpti_stacks_counts(void)
{
    kpti_stacks_count count;
    const int64_t waiting = atomic_load_explicit(&dead_count, memory_order_relaxed);
    kpti_stacks_lock();
    count.nodes = kpti_stacks.used;
    count.bytes = kpti_stacks.bytes;
    kpti_stacks_unlock();
    count.dead = waiting > 0 ? (uint64_t)waiting : 0;
    return count;
}
