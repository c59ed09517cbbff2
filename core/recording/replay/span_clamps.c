#include "core/recording/replay/span_clamps.h"

#include "core/base/assert.h"
#include "core/base/host_heap.h"

void kpti_span_clamps_free(kpti_span_clamps *clamps)
{
    if (!clamps->env) return;
    kpti_free(clamps->env, clamps->lasting, clamps->capacity * sizeof *clamps->lasting);
    kpti_free(clamps->env, clamps->open, clamps->open_capacity * sizeof *clamps->open);
    memset(clamps, 0, sizeof *clamps);
}

static int open_span(kpti_span_clamps *clamps, kpti_span span)
{
    if (!kpti_host_array_reserve(clamps->env, &clamps->open, &clamps->open_capacity,
                                 clamps->open_count + 1, sizeof *clamps->open))
        return 0;
    clamps->open[clamps->open_count++] = span;
    return 1;
}

/* Removes and returns the open span at AT. */
static kpti_span remove_open(kpti_span_clamps *clamps, uint64_t at)
{
    const kpti_span span = clamps->open[at];
    clamps->open_count--;
    memmove(&clamps->open[at], &clamps->open[at + 1],
            (clamps->open_count - at) * sizeof *clamps->open);
    return span;
}

/* Removes the innermost open span with this number. Returns 0 if there is none. */
static int close_span(kpti_span_clamps *clamps, uint32_t number, kpti_span *out)
{
    uint64_t at = clamps->open_count;
    while (at > 0 && clamps->open[at - 1].number != number)
        at--;
    if (at == 0) return 0;
    *out = remove_open(clamps, at - 1);
    kpti_assert(out->index < clamps->count && kpti_span_clamps_are_valid(clamps));
    return 1;
}

int kpti_span_clamps_scan(kpti_span_clamps *clamps, uint32_t number, uint64_t next_id)
{
    if (!kpti_host_array_reserve(clamps->env, &clamps->lasting, &clamps->capacity,
                                 clamps->count + 1, sizeof *clamps->lasting))
        return 0;
    if (!open_span(clamps, (kpti_span){clamps->count, next_id, number, 0})) return 0;
    clamps->lasting[clamps->count++] = 0;
    kpti_assert(kpti_span_clamps_are_valid(clamps));
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

void kpti_span_clamps_scan_end(kpti_span_clamps *clamps, uint32_t number,
                               const kpti_call_stack *stack)
{
    kpti_span span;
    if (close_span(clamps, number, &span)) clamps->lasting[span.index] = lasting_call(&span, stack);
}

void kpti_span_clamps_scan_end_all(kpti_span_clamps *clamps, const kpti_call_stack *stack)
{
    for (uint64_t i = 0; i < clamps->open_count; i++)
        clamps->lasting[clamps->open[i].index] = lasting_call(&clamps->open[i], stack);
    clamps->open_count = 0;
}

/* --- the second pass -------------------------------------------------------------------------- */

static kpti_call_record *floor_of(const kpti_span_clamps *clamps, uint64_t index,
                                  const kpti_call_stack *stack)
{
    const uint64_t open = (uint64_t)(stack->top - stack->base);
    const uint64_t lasting = index < clamps->count ? clamps->lasting[index] : open;
    return stack->base + (lasting < open ? lasting : open);
}

int kpti_span_clamps_apply(kpti_span_clamps *clamps, uint64_t index, uint32_t number,
                           uint32_t is_range, const kpti_call_stack *stack,
                           kpti_call_record **floor)
{
    *floor = floor_of(clamps, index, stack);
    kpti_assert(*floor >= stack->base && *floor <= stack->top);
    if (index >= clamps->count) return 1; /* not in the plan: cuts nothing */
    return open_span(clamps, (kpti_span){index, 0, number, is_range});
}

kpti_call_record *kpti_span_clamps_end(kpti_span_clamps *clamps, uint32_t number,
                                       const kpti_call_stack *stack, uint32_t *is_range)
{
    kpti_span span;
    *is_range = 0;
    if (!close_span(clamps, number, &span)) return NULL;
    *is_range = span.is_range;
    return floor_of(clamps, span.index, stack);
}

uint32_t kpti_span_clamps_take_range(kpti_span_clamps *clamps)
{
    uint64_t at = clamps->open_count;
    while (at > 0 && !clamps->open[at - 1].is_range)
        at--;
    return at ? remove_open(clamps, at - 1).number : KPTI_NO_RANGE;
}

void kpti_span_clamps_end_all(kpti_span_clamps *clamps)
{
    clamps->open_count = 0;
}
