#include "core/recording/replay/span_clamps.h"

#include "core/base/host_array.h"

void kpti_cuts_free(kpti_cuts *cuts)
{
    if (!cuts->env) return;
    kpti_free(cuts->env, cuts->lasting, cuts->room * sizeof *cuts->lasting);
    kpti_free(cuts->env, cuts->open, cuts->open_room * sizeof *cuts->open);
    memset(cuts, 0, sizeof *cuts);
}

static int open_span(kpti_cuts *cuts, kpti_span span)
{
    kpti_span *open = kpti_array_reserve(cuts->env, cuts->open, &cuts->open_room, cuts->open_count,
                                         cuts->open_count + 1, sizeof *open);
    if (!open) return 0;
    cuts->open = open;
    open[cuts->open_count++] = span;
    return 1;
}

/* Removes the innermost open span with this number. Returns 0 if there is none. */
static int close_span(kpti_cuts *cuts, uint32_t number, kpti_span *out)
{
    uint64_t at = cuts->open_count;
    while (at > 0 && cuts->open[at - 1].number != number)
        at--;
    if (at == 0) return 0;
    at--;
    *out = cuts->open[at];
    cuts->open_count--;
    memmove(&cuts->open[at], &cuts->open[at + 1], (cuts->open_count - at) * sizeof *cuts->open);
    return 1;
}

int kpti_cuts_plan(kpti_cuts *cuts, uint32_t number, uint64_t next_id)
{
    uint64_t *lasting = kpti_array_reserve(cuts->env, cuts->lasting, &cuts->room, cuts->count,
                                           cuts->count + 1, sizeof *lasting);
    if (!lasting) return 0;
    cuts->lasting = lasting;
    if (!open_span(cuts, (kpti_span){cuts->count, next_id, number, 0})) return 0;
    cuts->lasting[cuts->count++] = 0;
    return 1;
}

/* Returns the position of the innermost call that began before the span and is still open. */
static uint64_t lasting_call(const kpti_span *span, const kpti_call_stack *stack)
{
    const kpti_call_record *call = stack->top;
    while (call > stack->base && call->id >= span->first_id)
        call--;
    return (uint64_t)(call - stack->base);
}

void kpti_cuts_plan_end(kpti_cuts *cuts, uint32_t number, const kpti_call_stack *stack)
{
    kpti_span span;
    if (close_span(cuts, number, &span)) cuts->lasting[span.index] = lasting_call(&span, stack);
}

void kpti_cuts_plan_end_all(kpti_cuts *cuts, const kpti_call_stack *stack)
{
    for (uint64_t i = 0; i < cuts->open_count; i++)
        cuts->lasting[cuts->open[i].index] = lasting_call(&cuts->open[i], stack);
    cuts->open_count = 0;
}

/* --- the second pass -------------------------------------------------------------------------- */

static kpti_call_record *floor_of(const kpti_cuts *cuts, uint64_t index,
                                  const kpti_call_stack *stack)
{
    const uint64_t open = (uint64_t)(stack->top - stack->base);
    const uint64_t lasting = index < cuts->count ? cuts->lasting[index] : open;
    return stack->base + (lasting < open ? lasting : open);
}

int kpti_cuts_begin(kpti_cuts *cuts, uint64_t index, uint32_t number, const kpti_call_stack *stack,
                    kpti_call_record **floor)
{
    *floor = floor_of(cuts, index, stack);
    if (index >= cuts->count) return 1; /* not in the plan: cuts nothing */
    return open_span(cuts, (kpti_span){index, 0, number, 0});
}

kpti_call_record *kpti_cuts_end(kpti_cuts *cuts, uint32_t number, const kpti_call_stack *stack)
{
    kpti_span span;
    return close_span(cuts, number, &span) ? floor_of(cuts, span.index, stack) : NULL;
}

void kpti_cuts_end_all(kpti_cuts *cuts)
{
    cuts->open_count = 0;
}
