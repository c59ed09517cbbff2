/* held_stacks.c: see held_stacks.h. Each stack is held once. Hosts store stacks by number, and a number is
 * reused after its stack is released, so the stacks are held until destroy. Their number is bounded by the
 * code locations that call CUDA, however long the program runs. */
#include "gpu_tracer/correlation/held_stacks.h"

#include "core/base/hash.h"

static int is_used(const void *stack)
{
    return ((const kpt_traceback *)stack)->python != 0;
}

static int has_key(const void *stack, const void *number, const void *ctx)
{
    (void)ctx;
    return ((const kpt_traceback *)stack)->python == *(const uint32_t *)number;
}

static uint64_t hash(const void *stack, const void *ctx)
{
    (void)ctx;
    return kpti_hash_spread(((const kpt_traceback *)stack)->python) >> 20;
}

static const kpti_hash_slots slots = {sizeof(kpt_traceback), 256, is_used, has_key, hash};

void kpti_stacks_release(const kpti_gpu_session *s, kpt_traceback traceback)
{
    if (s->tracebacks.ops && traceback.python)
        (void)s->tracebacks.ops->release(s->tracebacks.self, &traceback, 1);
}

int kpti_stacks_hold(kpti_gpu_session *s, kpti_launch *launch)
{
    const kpti_heap heap = kpti_budget_heap(&s->budget);
    kpt_traceback *held;
    if (!launch->python.python || launch->flags & KPTI_LAUNCH_HELD) return 1;
    if (!kpti_hash_table_reserve(&s->stacks, &slots, &heap, NULL)) return 0;
    held = kpti_hash_table_find(&s->stacks, &slots, hash(&launch->python, NULL),
                                &launch->python.python, NULL);
    if (held->python) {
        kpti_stacks_release(s, launch->python);
    } else {
        *held = launch->python;
        s->stacks.count++;
    }
    launch->flags |= KPTI_LAUNCH_HELD;
    return 1;
}

void kpti_stacks_free(kpti_gpu_session *s)
{
    const kpti_heap heap = kpti_budget_heap(&s->budget);
    for (uint64_t i = 0; i < s->stacks.capacity; i++)
        kpti_stacks_release(s, *(kpt_traceback *)kpti_hash_table_at(&s->stacks, &slots, i));
    kpti_hash_table_free(&s->stacks, &slots, &heap);
}
