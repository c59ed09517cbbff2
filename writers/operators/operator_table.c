#include "writers/operators/operator_table.h"

#include "core/base/batch_records.h"
#include "writers/encode/escaped_strings.h"
#include "writers/operators/operator_walk.h"

struct kpti_operator_table {
    kpti_heap heap;
    uint32_t flags;
    kpti_operator_walk walk;
    kpti_fragments names;   /* copies, since the names of ranges end with the delivery */
    kpti_fragments threads; /* copies, as above */
    const kpti_profile_step *steps;
    uint32_t step_count;
    kpti_u64_map kind_of;  /* by name, and by caller and function: a number from 1 */
    kpti_u64_map place_of; /* by thread and step: a number from 1 */
    kpti_u64_map row_of;   /* by both numbers: index + 1 */
    uint32_t kinds;
    uint32_t places;
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

/* Sets *NUMBER to that of KEY, from 1 on. */
static kpt_status number_of(kpti_u64_map *map, uint64_t key, uint32_t *last, uint32_t *number)
{
    uint32_t *known = kpti_u64_map_at(map, key);
    if (!known) return KPT_E_MEMORY;
    if (!*known) *known = ++*last;
    *number = *known;
    return KPT_OK;
}

static kpt_status find_row(kpti_operator_table *t, const kpti_walked_operator *op,
                           kpti_operator_row **out)
{
    enum { NAME_BITS = 30 }; /* fewer names than KPTI_MAX_ITEMS */
    kpti_operator_row made = {.name = op->name, .kind = op->kind, .min_ns = UINT64_MAX};
    uint32_t *known;
    uint32_t kind;
    uint32_t place = 0;
    kpt_status status;
    set_caller(t, op, &made);
    if (t->flags & KPTI_OPERATORS_BY_THREAD) made.thread = op->thread;
    made.step = kpti_profile_step_at(t->steps, t->step_count, op->start_ns);
    status = number_of(&t->kind_of,
                       ((uint64_t)made.function << 2 | made.caller) << NAME_BITS | made.name,
                       &t->kinds, &kind);
    if (status == KPT_OK)
        status =
            number_of(&t->place_of, (uint64_t)made.thread << 32 | made.step, &t->places, &place);
    if (status != KPT_OK) return status;
    known = kpti_u64_map_at(&t->row_of, (uint64_t)place << 32 | kind);
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
    if (ns < row->min_ns) row->min_ns = ns;
    if (ns > row->max_ns) row->max_ns = ns;
    return KPT_OK;
}

/* --- batches ------------------------------------------------------------------------------------ */

static kpt_status copy(kpti_fragments *into, uint32_t index, kpt_str text)
{
    char *begin = kpti_fragments_reserve(into, (size_t)text.size + 1);
    if (!begin) return KPT_E_MEMORY;
    if (text.size) memcpy(begin, text.data, (size_t)text.size);
    return kpti_fragments_set(into, index, begin, (size_t)text.size, 0);
}

kpt_status kpti_operator_table_batch(void *table, const kpt_batch *batch)
{
    kpti_operator_table *t = table;
    kpt_status status = KPT_OK;
    if (!kpti_records_can_read(batch)) return KPT_E_SIZE;
    for (uint32_t i = 0; i < batch->name_count && status == KPT_OK; i++) {
        const kpt_name *name = kpti_record(batch->names, batch->name_stride, i);
        status = copy(&t->names, name->index, kpti_shown_name(name));
    }
    for (uint32_t i = 0; i < batch->thread_count && status == KPT_OK; i++) {
        const kpt_thread *thread = kpti_record(batch->threads, batch->thread_stride, i);
        status = copy(&t->threads, thread->index, thread->name);
    }
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

static kpt_str text_of(const kpti_fragments *texts, uint32_t index)
{
    static const kpti_fragment none = {"", 0, 0};
    const kpti_fragment text = kpti_fragments_get(texts, index, none);
    return (kpt_str){text.text, text.size};
}

kpt_str kpti_operator_table_name(const kpti_operator_table *t, uint32_t index)
{
    return text_of(&t->names, index);
}

kpt_str kpti_operator_table_thread(const kpti_operator_table *t, uint32_t index)
{
    return text_of(&t->threads, index);
}

void kpti_operator_table_by_step(kpti_operator_table *t, const kpti_profile_step *steps,
                                 uint32_t count)
{
    t->steps = steps;
    t->step_count = count;
}

kpt_status kpti_operator_table_open(const kpti_heap *heap, uint32_t flags,
                                    kpti_operator_table **out)
{
    kpti_operator_table *t = kpti_heap_take(heap, sizeof *t);
    *out = t;
    if (!t) return KPT_E_MEMORY;
    *t = (kpti_operator_table){.heap = *heap, .flags = flags};
    t->names.heap = t->threads.heap = *heap;
    t->kind_of.heap = t->place_of.heap = t->row_of.heap = *heap;
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
    kpti_fragments_free(&t->threads);
    kpti_u64_map_free(&t->kind_of);
    kpti_u64_map_free(&t->place_of);
    kpti_u64_map_free(&t->row_of);
    kpti_heap_give(&heap, t->rows, t->row_capacity * sizeof *t->rows);
    kpti_heap_give(&heap, t, sizeof *t);
}
