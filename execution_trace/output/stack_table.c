#include "execution_trace/output/stack_table.h"

#include "core/base/growable_array.h"

void kpti_et_stack_table_init(kpti_et_stack_table *t, const kpti_heap *heap)
{
    t->heap = t->frames.heap = heap;
    t->locations.heap = t->stacks.heap = *heap;
}

void kpti_et_stack_table_free(kpti_et_stack_table *t)
{
    kpti_u64_map_free(&t->locations);
    kpti_u64_map_free(&t->stacks);
    kpti_et_text_free(&t->frames);
    kpti_heap_give(t->heap, t->rows, t->row_capacity * sizeof *t->rows);
}

void kpti_et_stack_table_place(kpti_et_stack_table *t, const kpti_et_item *item)
{
    const kpti_et_location *location = (const kpti_et_location *)item->record;
    uint32_t *known = kpti_u64_map_at(&t->locations, location->location);
    if (!known) {
        t->failed = 1;
        return;
    }
    if (*known) return; /* another thread has written it */
    *known = ++t->frame_count;
    if (t->frame_count > 1) kpti_et_text_char(&t->frames, ',');
    KPTI_ET_PUT(&t->frames, "\n[\"");
    kpti_et_text_of(&t->frames, item, location->name);
    KPTI_ET_PUT(&t->frames, "\",\"");
    kpti_et_text_of(&t->frames, item, location->file);
    KPTI_ET_PUT(&t->frames, "\",");
    kpti_et_text_u64(&t->frames, location->line);
    kpti_et_text_char(&t->frames, ']');
}

uint32_t kpti_et_stack_table_row(kpti_et_stack_table *t, uint32_t stack)
{
    uint32_t *known = stack ? kpti_u64_map_at(&t->stacks, stack) : NULL;
    if (!stack) return 0;
    if (!known || (!*known && kpti_array_reach(t->heap, &t->rows, &t->row_capacity, t->row_count,
                                               sizeof *t->rows) != KPT_OK)) {
        t->failed = 1;
        return 0;
    }
    if (!*known) *known = ++t->row_count;
    return *known;
}

void kpti_et_stack_table_stack(kpti_et_stack_table *t, const kpti_et_item *item)
{
    const kpti_et_stack *stack = (const kpti_et_stack *)item->record;
    const uint32_t row = kpti_et_stack_table_row(t, stack->stack);
    const uint32_t below = kpti_et_stack_table_row(t, stack->below);
    const uint32_t *frame = kpti_u64_map_at(&t->locations, stack->location);
    if (!frame) t->failed = 1;
    if (row && frame) t->rows[row - 1] = (kpti_et_stack_row){below, *frame};
}

void kpti_et_stack_table_put(kpti_et_stack_table *t, kpti_et_text *out)
{
    KPTI_ET_PUT(out, "\"frames\":[");
    kpti_et_text_put(out, t->frames.data, t->frames.used);
    KPTI_ET_PUT(out, "],\"stacks\":[");
    for (uint32_t i = 0; i < t->row_count; i++) {
        kpti_et_text_put(out, i ? ",[" : "[", i ? 2 : 1);
        kpti_et_text_i64(out, (int64_t)t->rows[i].below - 1);
        kpti_et_text_char(out, ',');
        kpti_et_text_i64(out, (int64_t)t->rows[i].frame - 1);
        kpti_et_text_char(out, ']');
    }
    kpti_et_text_char(out, ']');
    out->failed |= t->failed | t->frames.failed;
}
