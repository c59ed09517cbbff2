/* correlation_table.c: per-correlation-id state, kept until every record with that id has arrived.
 *
 * A recording may last for days, so rows are dropped. Which records of a call are still outstanding is not
 * known: one id may belong to a call, the driver's part of it, a kernel, a copy, and, in a graph, to any
 * number of them. But CUDA queues about a thousand launches per stream, and CUPTI holds back one or two
 * buffers, so an OLD row is complete. Only launches whose kernels have not arrived are kept longer, since a
 * kernel may run for hours.
 *
 * Invariants: count * 4 <= capacity * 3. The table takes at most a quarter of the budget. A row that was
 * touched in this turn stays. */
#include "gpu_tracer/correlation/correlation_table.h"

#include "core/base/assert.h"
#include "core/base/hash.h"
#include "gpu_tracer/correlation/held_stacks.h"

enum {
    FIRST_CAPACITY = 1024,
    OLD_TURNS = 4,
    OLD_ROWS = 1 << 16,      /* rows made since the row was touched */
    OLD_GRAPH_ROWS = 1 << 20 /* a graph may run for long while the program launches other work */
};

static uint64_t hash_of(uint32_t correlation)
{
    return kpti_hash_spread(correlation) >> 20;
}

static int is_used(const void *row)
{
    return ((const kpti_gpu_known *)row)->launch.correlation != 0;
}

static int has_key(const void *row, const void *correlation, const void *ctx)
{
    (void)ctx;
    return ((const kpti_gpu_known *)row)->launch.correlation == *(const uint32_t *)correlation;
}

static uint64_t hash(const void *row, const void *ctx)
{
    (void)ctx;
    return hash_of(((const kpti_gpu_known *)row)->launch.correlation);
}

static const kpti_hash_slots slots = {sizeof(kpti_gpu_known), FIRST_CAPACITY, is_used, has_key,
                                      hash};

static kpti_gpu_known *row_at(const kpti_gpu_table *table, uint64_t i)
{
    return kpti_hash_table_at(&table->rows, &slots, i);
}

kpti_gpu_known *kpti_known_find(const kpti_gpu_table *table, uint64_t correlation)
{
    const uint32_t key = (uint32_t)correlation;
    kpti_gpu_known *row;
    if (!table->rows.capacity || !correlation) return NULL;
    row = kpti_hash_table_find(&table->rows, &slots, hash_of(key), &key, NULL);
    return row->launch.correlation ? row : NULL;
}

static void touch(const kpti_gpu_table *table, kpti_gpu_known *row)
{
    row->turn = table->turn;
    row->made = table->made;
}

static void see_event(kpti_gpu_session *s, const kpt_gpu_event *event)
{
    kpti_gpu_known *row = kpti_known_find(&s->table, event->correlation);
    if (row) touch(&s->table, row);
    if (row && event->kind == KPT_GPU_KERNEL) row->launch.flags |= KPTI_LAUNCH_SEEN;
    if (event->device != KPT_GPU_NONE && event->context < KPTI_MAX_CONTEXTS)
        s->device_of[event->context] = event->device + 1;
}

void kpti_known_see(kpti_gpu_session *s)
{
    kpti_list_position at_event = {0};
    kpti_list_position at_call = {0};
    const kpt_gpu_event *event;
    const kpti_gpu_call *call;
    while ((event = kpti_list_next(&s->ready.of[KPTI_GPU_EVENTS], &at_event)))
        see_event(s, event);
    while ((call = kpti_list_next(&s->ready.of[KPTI_GPU_CALLS], &at_call))) {
        kpti_gpu_known *row = kpti_known_find(&s->table, call->correlation);
        if (row) touch(&s->table, row);
    }
}

static int grow(kpti_gpu_session *s)
{
    const kpti_heap heap = kpti_budget_heap(&s->budget);
    if (s->table.rows.capacity * 2 * sizeof(kpti_gpu_known) > s->budget.max / 4) return 0;
    return kpti_hash_table_grow(&s->table.rows, &slots, &heap, NULL);
}

static int is_awaited(const kpti_gpu_known *row)
{
    return kpti_launch_is_awaited(row->launch.flags);
}

static int is_old(const kpti_gpu_table *table, const kpti_gpu_known *row)
{
    const uint32_t rows = row->launch.flags & KPTI_LAUNCH_GRAPH ? OLD_GRAPH_ROWS : OLD_ROWS;
    return table->turn - row->turn >= OLD_TURNS && table->made - row->made >= rows;
}

/* Which rows may be dropped. */
typedef struct mercy {
    int young;   /* also rows that are not old */
    int awaited; /* also rows whose kernels have not arrived */
} mercy;

static int may_go(const kpti_gpu_table *table, const kpti_gpu_known *row, mercy without)
{
    if (!row->launch.correlation || row->turn == table->turn) return 0;
    return (without.awaited || !is_awaited(row)) && (without.young || is_old(table, row));
}

static void release_row(const kpti_gpu_session *s, const kpti_gpu_known *row)
{
    if (!(row->launch.flags & KPTI_LAUNCH_HELD)) kpti_stacks_release(s, row->launch.python);
}

void kpti_known_lose(kpti_gpu_session *s, uint64_t launches, uint64_t awaited)
{
    s->table.forgotten += launches;
    s->table.early += launches;
    s->table.awaited += awaited;
    s->lost_kernels += awaited; /* until their kernels arrive */
}

static void forget(kpti_gpu_session *s, const kpti_gpu_known *row)
{
    release_row(s, row);
    if (is_awaited(row) || !is_old(&s->table, row))
        kpti_known_lose(s, 1, (uint64_t)is_awaited(row));
    else
        s->table.forgotten++;
}

/* Returns 1 if at least half of the table is free afterwards. Otherwise rows would have to be dropped again
 * soon. */
static int forget_rows(kpti_gpu_session *s, mercy without)
{
    kpti_gpu_table *table = &s->table;
    for (uint64_t i = 0; i < table->rows.capacity; i++)
        while (may_go(table, row_at(table, i), without)) { /* another row may move up to I */
            forget(s, row_at(table, i));
            kpti_hash_table_remove(&table->rows, &slots, row_at(table, i), NULL);
        }
    return table->rows.capacity && table->rows.count * 2 <= table->rows.capacity;
}

static int is_full(const kpti_gpu_table *table)
{
    return (table->rows.count + 1) * 4 > table->rows.capacity * 3;
}

/* Drops rows for lack of space, once per turn. The remaining rows were touched in this turn. */
static int press(kpti_gpu_session *s)
{
    static const mercy without[] = {{.awaited = 1}, {.young = 1}, {.young = 1, .awaited = 1}};
    s->table.pressed = s->table.turn;
    for (size_t i = 0; i < sizeof without / sizeof without[0]; i++)
        if (forget_rows(s, without[i])) break;
    return !is_full(&s->table);
}

static int reserve(kpti_gpu_session *s)
{
    kpti_gpu_table *table = &s->table;
    if (table->pressed == table->turn) return grow(s);
    if (table->seen != table->turn) kpti_known_see(s);
    table->seen = table->turn;
    return forget_rows(s, (mercy){0}) || grow(s) || press(s);
}

kpti_gpu_known *kpti_known_row(kpti_gpu_session *s, uint32_t correlation)
{
    kpti_gpu_known *row = kpti_known_find(&s->table, correlation);
    if (!correlation || (!row && is_full(&s->table) && !reserve(s))) return NULL;
    if (!row) {
        row = kpti_hash_table_place(&s->table.rows, &slots, hash_of(correlation));
        row->launch.correlation = correlation;
        s->table.rows.count++;
        s->table.made++;
    }
    touch(&s->table, row);
    kpti_assert(row == kpti_known_find(&s->table, correlation));
    return row;
}

void kpti_known_count_lost(kpti_gpu_session *s)
{
    for (uint64_t i = 0; i < s->table.rows.capacity; i++)
        s->lost_kernels += (uint64_t)is_awaited(row_at(&s->table, i));
}

void kpti_known_free(kpti_gpu_session *s)
{
    const kpti_heap heap = kpti_budget_heap(&s->budget);
    for (uint64_t i = 0; i < s->table.rows.capacity; i++)
        release_row(s, row_at(&s->table, i));
    kpti_hash_table_free(&s->table.rows, &slots, &heap);
    memset(&s->table, 0, sizeof s->table);
}
