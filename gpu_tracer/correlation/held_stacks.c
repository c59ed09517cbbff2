/* held_stacks.c: see held_stacks.h. Each stack is held once. Hosts store stacks by number, and a number is
 * reused after its stack is released, so the stacks are held until destroy. Their number is bounded by the
 * code locations that call CUDA, however long the program runs. */
#include "gpu_tracer/correlation/held_stacks.h"

static kpt_traceback *place_of(const kpti_gpu_stacks *stacks, uint32_t number)
{
    for (uint64_t i = (number * UINT64_C(0x9E3779B97F4A7C15)) >> 20;; i++) {
        kpt_traceback *row = &stacks->rows[i & (stacks->capacity - 1)];
        if (!row->python || row->python == number) return row;
    }
}

static int grow(kpti_gpu_session *s)
{
    enum { FIRST_ROOM = 256 };
    kpti_gpu_stacks bigger = s->stacks;
    bigger.capacity = s->stacks.capacity ? s->stacks.capacity * 2 : FIRST_ROOM;
    bigger.rows = kpti_budget_alloc(&s->budget, bigger.capacity * sizeof *bigger.rows);
    if (!bigger.rows) return 0;
    for (uint64_t i = 0; i < s->stacks.capacity; i++)
        if (s->stacks.rows[i].python)
            *place_of(&bigger, s->stacks.rows[i].python) = s->stacks.rows[i];
    kpti_budget_free(&s->budget, s->stacks.rows, s->stacks.capacity * sizeof *s->stacks.rows);
    s->stacks = bigger;
    return 1;
}

void kpti_stacks_release(const kpti_gpu_session *s, kpt_traceback traceback)
{
    if (s->tracebacks.ops && traceback.python)
        (void)s->tracebacks.ops->release(s->tracebacks.self, &traceback, 1);
}

int kpti_stacks_hold(kpti_gpu_session *s, kpti_launch *launch)
{
    kpt_traceback *held;
    if (!launch->python.python || launch->flags & KPTI_LAUNCH_HELD) return 1;
    if ((s->stacks.count + 1) * 2 > s->stacks.capacity && !grow(s)) return 0;
    held = place_of(&s->stacks, launch->python.python);
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
    for (uint64_t i = 0; i < s->stacks.capacity; i++)
        kpti_stacks_release(s, s->stacks.rows[i]);
    kpti_budget_free(&s->budget, s->stacks.rows, s->stacks.capacity * sizeof *s->stacks.rows);
    memset(&s->stacks, 0, sizeof s->stacks);
}
