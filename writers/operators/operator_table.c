#include "writers/operators/operator_table.h"

#include "core/base/batch_records.h"
#include "writers/encode/escaped_strings.h"
#include "writers/operators/operator_walk.h"

struct kpti_operator_table {
    kpti_heap heap;
    uint32_t flags;
    kpti_operator_walk walk;
    kpti_fragments names; /* copies, since the names of ranges end with the delivery */
    kpti_u64_map row_of;  /* by name, and by caller and function: index + 1 */
    kpti_operator_row *rows;
    uint32_t row_capacity;
    uint32_t row_count;
};

/* --- rows --------------------------------------------------------------------------------------- */

/* Finds where OP was called. */
static void set_caller(const kpti_operator_table *t, const kpti_walked_operator *op,
                       kpti_operator_row *row)
{
    uint32_t stack = op->is_backward ? op->forward : op->stack;
    if (!(t->flags & KPTI_OPERATORS_BY_FUNCTION)) return;
    if (stack) {
        row->caller = op->is_backward ? KPTI_CALLED_BY_AUTOGRAD : KPTI_CALLED_BY_FUNCTION;
        row->function = kpti_operator_walk_function(&t->walk, stack);
    } else if (op->is_backward) {
        row->caller = KPTI_CALLED_BY_AUTOGRAD_FOR_UNKNOWN;
    }
}

static kpt_status find_row(kpti_operator_table *t, const kpti_walked_operator *op,
                           kpti_operator_row **out)
{
    enum { NAME_BITS = 30 }; /* fewer names than KPTI_MAX_ITEMS */
    kpti_operator_row made = {.name = op->name, .kind = op->kind};
    uint32_t *known;
    kpt_status status;
    set_caller(t, op, &made);
    known = kpti_u64_map_at(&t->row_of,
                            ((uint64_t)made.function << 2 | made.caller) << NAME_BITS | made.name);
    if (!known) return KPT_E_MEMORY;
    if (!*known) {
        status =
            kpti_array_reach(&t->heap, &t->rows, &t->row_capacity, t->row_count, sizeof *t->rows);
        if (status != KPT_OK) return status;
        t->rows[t->row_count] = made;
        *known = ++t->row_count;
    }
    *out = &t->rows[*known - 1];
    return KPT_OK;
}

static kpt_status take_operator(void *table, const kpti_walked_operator *op)
{
    const uint64_t ns =
        op->end_ns > op->start_ns ? (uint64_t)op->end_ns - (uint64_t)op->start_ns : 0;
    kpti_operator_row *row;
    kpt_status status;
    if (op->name >= KPTI_MAX_ITEMS) return KPT_E_LIMIT;
    status = find_row(table, op, &row);
    if (status != KPT_OK) return status;
    row->calls += !(op->flags & KPT_ACTIVITY_CONTINUED);
    row->own_ns += op->own_ns;
    row->gpu_own_ns += op->gpu_own_ns;
    if (!op->is_inside) {
        row->total_ns += ns;
        row->gpu_total_ns += op->gpu_total_ns;
    }
    if (ns > row->max_ns) row->max_ns = ns;
    return KPT_OK;
}

/* --- batches ------------------------------------------------------------------------------------ */

static kpt_status take_name(kpti_operator_table *t, const kpt_name *name)
{
    const kpt_str shown = kpti_shown_name(name);
    char *begin = kpti_fragments_reserve(&t->names, (size_t)shown.size + 1);
    if (!begin) return KPT_E_MEMORY;
    if (shown.size) memcpy(begin, shown.data, (size_t)shown.size);
    return kpti_fragments_set(&t->names, name->index, begin, (size_t)shown.size, 0);
}

kpt_status kpti_operator_table_batch(void *table, const kpt_batch *batch)
{
    kpti_operator_table *t = table;
    kpt_status status = KPT_OK;
    if (!kpti_records_can_read(batch)) return KPT_E_SIZE;
    for (uint32_t i = 0; i < batch->name_count && status == KPT_OK; i++)
        status = take_name(t, kpti_record(batch->names, batch->name_stride, i));
    return status == KPT_OK ? kpti_operator_walk_batch(&t->walk, batch) : status;
}

kpt_status kpti_operator_table_add_gpu(kpti_operator_table *t, const kpti_gpu_log *log)
{
    return kpti_operator_walk_add_gpu(&t->walk, log);
}

const kpti_operator_row *kpti_operator_table_rows(const kpti_operator_table *t, uint32_t *count)
{
    *count = t->row_count;
    return t->rows;
}

kpt_str kpti_operator_table_name(const kpti_operator_table *t, uint32_t index)
{
    static const kpti_fragment none = {"", 0, 0};
    const kpti_fragment name = kpti_fragments_get(&t->names, index, none);
    return (kpt_str){name.text, name.size};
}

kpt_status kpti_operator_table_open(const kpti_heap *heap, uint32_t flags,
                                    kpti_operator_table **out)
{
    kpti_operator_table *t = kpti_heap_take(heap, sizeof *t);
    *out = t;
    if (!t) return KPT_E_MEMORY;
    *t = (kpti_operator_table){.heap = *heap, .flags = flags};
    t->names.heap = t->row_of.heap = *heap;
    kpti_operator_walk_init(&t->walk, heap, take_operator, t);
    return KPT_OK;
}

void kpti_operator_table_free(kpti_operator_table *t)
{
    kpti_heap heap;
    if (!t) return;
    heap = t->heap;
    kpti_operator_walk_free(&t->walk);
    kpti_fragments_free(&t->names);
    kpti_u64_map_free(&t->row_of);
    kpti_heap_give(&heap, t->rows, t->row_capacity * sizeof *t->rows);
    kpti_heap_give(&heap, t, sizeof *t);
}
