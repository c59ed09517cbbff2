#include "core/recording/replay/call_stack.h"

#include "core/base/assert.h"
#include "core/base/host_heap.h"

/* The key of no event: keys of calls have KPTI_KIND_BITS zero bits at the end, and that of a collection is its
 * kind. */
enum { SENTINEL_KEY = 15 };
enum { FIRST_CAPACITY = 64 };

int kpti_call_stack_init(kpti_call_stack *stack, const kpti_env *env)
{
    stack->env = env;
    stack->base = NULL;
    stack->capacity = 0;
    if (!kpti_host_array_reserve(env, &stack->base, &stack->capacity, FIRST_CAPACITY,
                                 sizeof *stack->base))
        return 0;
    stack->base->key = SENTINEL_KEY;
    stack->base->depth = UINT32_MAX; /* plus 1 is 0 */
    stack->top = stack->base;
    stack->last = stack->base + stack->capacity - 1;
    kpti_assert(kpti_call_stack_is_valid(stack));
    return 1;
}

int kpti_call_stack_grow(kpti_call_stack *stack)
{
    const size_t used = (size_t)(stack->top - stack->base);
    if (!kpti_host_array_reserve(stack->env, &stack->base, &stack->capacity, stack->capacity + 1,
                                 sizeof *stack->base))
        return 0;
    stack->top = stack->base + used;
    stack->last = stack->base + stack->capacity - 1;
    kpti_assert(kpti_call_stack_is_valid(stack));
    return 1;
}

void kpti_call_stack_free(kpti_call_stack *stack)
{
    kpti_free(stack->env, stack->base, stack->capacity * sizeof *stack->base);
}

kpti_call_record *kpti_call_stack_find(kpti_call_stack *stack, uint32_t key, uint64_t next_id)
{
    kpti_miss *miss = &stack->misses[(key >> KPTI_KIND_BITS) % KPTI_MISSES];
    const uint64_t oldest = miss->key == key ? miss->id : 0;
    kpti_call_record *call = stack->top;
    kpti_assert(key != SENTINEL_KEY && kpti_call_true_id(call) < next_id);
    for (; call > stack->base && kpti_call_true_id(call) >= oldest; call--)
        if (call->key == key || call->key == (key | KPTI_GHOST_KEY)) return call;
    miss->key = key;
    miss->id = next_id;
    return NULL;
}
