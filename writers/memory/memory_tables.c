#include "writers/memory/memory_tables.h"

#include <math.h>
#include <stdlib.h>

#include "abi/kpt_text.h"
#include "core/base/u64_map.h"
#include "writers/encode/json_text.h"
#include "writers/memory/memory_survey.h"

/* Bytes and blocks; estimates if the recording was sampled. */
typedef struct amount {
    double bytes;
    double blocks;
} amount;

/* The allocations of a stack in a pool. */
typedef struct row {
    uint32_t pool;
    uint32_t node;
    amount now; /* while the history is read; then at the end */
    amount at_peak;
    amount in_all;
} row;

typedef struct tables {
    kpti_memory_history *history;
    kpti_out_file *out;
    kpti_memory_survey survey;
    kpti_u64_map by_key; /* index of a row + 1, by pool and node */
    row *rows;
    uint32_t count;
    uint32_t capacity;
} tables;

static row *row_of(tables *t, uint32_t pool, uint32_t node)
{
    uint32_t *index = kpti_u64_map_at(&t->by_key, (uint64_t)pool << 32 | node);
    if (!index) return NULL;
    if (*index) return &t->rows[*index - 1];
    if (kpti_array_reach(&t->by_key.heap, &t->rows, &t->capacity, t->count, sizeof *t->rows) !=
        KPT_OK)
        return NULL;
    t->rows[t->count] = (row){.pool = pool, .node = node};
    *index = t->count + 1;
    return &t->rows[t->count++];
}

static row *row_of_block(tables *t, const kpti_memory_block *block)
{
    return row_of(t, kpti_memory_block_pool(block), block->stack);
}

/* Adds SIGN blocks of this size. */
static void add(const tables *t, amount *to, uint64_t size, double sign)
{
    const double weight = sign * kpti_memory_weight(size, t->history->sample_bytes);
    to->bytes += (double)size * weight;
    to->blocks += weight;
}

static int count_entry(tables *t, const kpti_memory_entry *e)
{
    row *r = e->ends ? row_of_block(t, &e->ended) : NULL;
    if (r) add(t, &r->now, kpti_memory_block_size(&e->ended), -1);
    if (!(e->kind & KPTI_MEMORY_ALLOC)) return 1;
    r = row_of(t, e->pool, e->stack);
    if (!r) return 0;
    add(t, &r->in_all, e->size, 1);
    add(t, &r->now, e->size, 1);
    if (e->index + 1 != t->survey.peak_after) return 1;
    for (uint32_t i = 0; i < t->count; i++)
        t->rows[i].at_peak = t->rows[i].now;
    return 1;
}

static int count_all(tables *t)
{
    kpti_memory_history *h = t->history;
    kpti_memory_entry e;
    uint32_t *alive;
    uint32_t count;
    kpti_memory_history_first(h);
    while (kpti_memory_history_next(h, &e))
        if (!count_entry(t, &e)) return 0;
    if (h->failed) return 0;
    for (uint32_t i = 0; i < t->count; i++)
        t->rows[i].now = (amount){0, 0};
    count = kpti_memory_live_list(&h->live, &alive); /* without those that a newer block overlaps */
    for (uint32_t i = 0; i < count; i++) {
        const kpti_memory_block *block = kpti_memory_live_at(&h->live, alive[i]);
        row *r = row_of_block(t, block);
        if (r) add(t, &r->now, kpti_memory_block_size(block), 1);
    }
    return 1;
}

static void put(tables *t, const char *text)
{
    kpti_out_put(t->out, text, strlen(text));
}

static void put_number(tables *t, uint64_t value)
{
    kpti_out_wrote(t->out, kpti_put_u64(kpti_out_reserve(t->out, KPTI_JSON_MAX_NUMBER), value));
}

static void put_text(tables *t, kpt_str text)
{
    enum { MAX = 16384 };
    const size_t size = text.size < MAX ? (size_t)text.size : MAX;
    put(t, "\"");
    kpti_out_wrote(t->out,
                   kpti_json_escape(kpti_out_reserve(t->out, (size_t)MAX * KPTI_JSON_MAX_GROWTH),
                                    text.data, text.data ? size : 0));
    put(t, "\"");
}

/* Writes "KEY":VALUE and then BEHIND. */
static void put_field(tables *t, const char *key, uint64_t value, const char *behind)
{
    put(t, "\"");
    put(t, key);
    put(t, "\":");
    put_number(t, value);
    put(t, behind);
}

static void put_comma(tables *t, uint64_t index)
{
    if (index) put(t, ",\n");
}

static void put_head(tables *t)
{
    const kpti_memory_history *h = t->history;
    put(t, "{\"schema\":\"kpytrace.memory.1\",\n");
    put_field(t, "sample_bytes", h->sample_bytes, ",");
    put_field(t, "entries", h->count, ",");
    put_field(t, "entries_dropped", h->dropped, ",");
    put_field(t, "frees_of_earlier_blocks", t->survey.unseen_frees, ",");
    put_field(t, "peak_time_ns", (uint64_t)t->survey.peak_time_ns, ",");
    put_field(t, "end_time_ns", (uint64_t)t->survey.end_time_ns, ",\n\"devices\":[");
    for (uint32_t i = 0; i < h->names.device_count; i++) {
        if (i) put(t, ",");
        put_text(t, kpt_str_of(h->names.devices[i].name));
    }
}

static void put_stacks(tables *t)
{
    const kpti_memory_names *names = &t->history->names;
    put(t, "],\n\"symbols\":[");
    for (uint64_t i = 0; i < names->symbol_count; i++) {
        const kpti_memory_symbol *s = &names->symbols[i];
        put_comma(t, i);
        put(t, "[");
        put_text(t, s->name);
        put(t, ",");
        put_text(t, s->file);
        put(t, ",");
        put_number(t, s->line);
        put(t, "]");
    }
    put(t, "],\n\"nodes\":[");
    for (uint64_t i = 0; i < names->node_count; i++) {
        put_comma(t, i);
        put(t, "[");
        put_number(t, names->nodes[i].parent);
        put(t, ",");
        put_number(t, names->nodes[i].symbol);
        put(t, "]");
    }
}

static void put_amount(tables *t, const amount *a)
{
    put(t, ",");
    put_number(t, (uint64_t)llround(a->bytes));
    put(t, ",");
    put_number(t, (uint64_t)llround(a->blocks));
}

static void put_rows(tables *t)
{
    const kpti_memory_names *names = &t->history->names;
    put(t, "],\n\"rows\":[");
    for (uint32_t i = 0; i < t->count; i++) {
        const row *r = &t->rows[i];
        const kpti_pool_tags *pool = &names->pools[r->pool];
        put_comma(t, i);
        put(t, "[");
        put_number(t, pool->device);
        put(t, ",");
        put_number(t, r->node);
        put_amount(t, &r->at_peak);
        put_amount(t, &r->now);
        put_amount(t, &r->in_all);
        if (names->has_reported) {
            put(t, ",");
            put_text(t, pool->category);
            put(t, ",");
            put_text(t, pool->owner);
        }
        put(t, "]");
    }
    put(t, "]}\n");
}

int kpti_memory_tables_write(kpti_memory_history *history, kpti_out_file *out)
{
    tables t = {.history = history, .out = out};
    const int whole = kpti_memory_survey_make(&t.survey, history) && count_all(&t);
    if (whole) {
        put_head(&t);
        put_stacks(&t);
        put_rows(&t);
    }
    kpti_memory_survey_free(&t.survey);
    kpti_u64_map_free(&t.by_key);
    free(t.rows);
    return whole;
}
