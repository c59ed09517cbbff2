#include "writers/findings/wait_table.h"

#include "core/base/assert.h"

static kpt_status find_row(kpti_wait_table *t, uint32_t in, uint32_t by, kpti_wait_row **out)
{
    uint32_t *number = kpti_u64_map_at(&t->row_of, (uint64_t)in << 32 | by);
    kpt_status status;
    if (!number) return KPT_E_MEMORY;
    if (!*number) {
        status =
            kpti_array_reach(&t->heap, &t->rows, &t->row_capacity, t->row_count, sizeof *t->rows);
        if (status != KPT_OK) return status;
        t->rows[t->row_count] = (kpti_wait_row){.in = in, .by = by};
        *number = ++t->row_count;
    }
    *out = &t->rows[*number - 1];
    return KPT_OK;
}

/* Counts a wait, which BY waited. */
static kpt_status count(kpti_wait_table *t, const kpti_pending_wait *wait, uint32_t by)
{
    kpti_wait_row *row;
    kpt_status status = find_row(t, wait->in, by, &row);
    if (status != KPT_OK) return status;
    row->kind = wait->kind;
    row->count += wait->count;
    row->total_ns += wait->total_ns;
    if (row->last_thread != t->thread) {
        status = kpti_array_reach(&t->heap, &t->waited, &t->waited_capacity, t->waited_count,
                                  sizeof *t->waited);
        if (status != KPT_OK) return status;
        t->waited[t->waited_count++] = (uint32_t)(row - t->rows);
        row->threads++;
        row->last_thread = t->thread;
    }
    if (wait->longest.ns > row->longest.ns) row->longest = wait->longest;
    if (wait->kind <= KPTI_CLASS_WORK && wait->longest.ns > t->longest.ns) {
        t->longest = wait->longest;
        t->longest_row = (uint32_t)(row - t->rows) + 1;
    }
    return KPT_OK;
}

/* Adds WAIT to the last pending one if they are of one function at one depth. Returns whether it did. */
static int merge(kpti_pending_wait *into, const kpti_pending_wait *wait)
{
    if (into->depth != wait->depth || into->in != wait->in || into->kind != wait->kind) return 0;
    into->count += wait->count;
    into->total_ns += wait->total_ns;
    if (wait->longest.ns > into->longest.ns) into->longest = wait->longest;
    return 1;
}

static kpt_status push(kpti_wait_table *t, const kpti_pending_wait *wait)
{
    kpt_status status;
    kpti_assert(!t->pending_count || t->pending[t->pending_count - 1].depth <= wait->depth);
    for (uint32_t i = t->pending_count; i && t->pending[i - 1].depth == wait->depth; i--)
        if (merge(&t->pending[i - 1], wait)) return KPT_OK;
    status = kpti_array_reach(&t->heap, &t->pending, &t->pending_capacity, t->pending_count,
                              sizeof *t->pending);
    if (status == KPT_OK) t->pending[t->pending_count++] = *wait;
    return status;
}

kpt_status kpti_wait_table_add(kpti_wait_table *t, uint32_t depth, uint32_t kind,
                               const kpti_place *place)
{
    const kpti_pending_wait wait = {depth, place->name, kind, 1, place->ns, *place};
    return depth ? push(t, &wait) : count(t, &wait, place->name);
}

/* Makes a wait one of the call around it, which is of the library, or a C function. */
static void move_out(kpti_pending_wait *wait, uint32_t depth, uint32_t name, uint32_t kind)
{
    wait->depth = depth;
    if (kind != KPTI_CLASS_LIBRARY_LOCK && kind != KPTI_CLASS_LIBRARY_WORK) return;
    if (wait->kind > KPTI_CLASS_WORK) return;
    wait->kind = kind == KPTI_CLASS_LIBRARY_LOCK ? KPTI_CLASS_LOCK : KPTI_CLASS_WORK;
    wait->in = name;
}

kpt_status kpti_wait_table_end_slow(kpti_wait_table *t, uint32_t depth, uint32_t name,
                                    uint32_t kind, int is_c)
{
    const int goes_on = (is_c || kpti_class_is_library(kind)) && depth;
    uint32_t from = t->pending_count;
    const uint32_t end = t->pending_count;
    kpt_status status = KPT_OK;
    while (from && t->pending[from - 1].depth > depth)
        from--;
    t->pending_count = from;
    for (uint32_t i = from; i < end && status == KPT_OK; i++) {
        kpti_pending_wait wait = t->pending[i];
        if (is_c || kpti_class_is_library(kind)) move_out(&wait, depth, name, kind);
        status = goes_on                               ? push(t, &wait)
                 : kpti_class_is_library(kind) || is_c ? count(t, &wait, wait.in)
                                                       : count(t, &wait, name);
    }
    return status;
}

void kpti_wait_table_end_thread(kpti_wait_table *t, uint64_t life_ns)
{
    for (uint32_t i = 0; i < t->waited_count; i++)
        t->rows[t->waited[i]].lives_ns += life_ns;
    t->waited_count = 0;
    t->pending_count = 0;
    t->longest_row = 0;
    t->longest.ns = 0;
}

void kpti_wait_table_free(kpti_wait_table *t)
{
    kpti_heap_give(&t->heap, t->waited, t->waited_capacity * sizeof *t->waited);
    kpti_heap_give(&t->heap, t->rows, t->row_capacity * sizeof *t->rows);
    kpti_heap_give(&t->heap, t->pending, t->pending_capacity * sizeof *t->pending);
    kpti_u64_map_free(&t->row_of);
}
