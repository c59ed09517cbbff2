#include "writers/memory/memory_tables.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/u64_map.h"
#include "writers/encode/json_text.h"
#include "writers/memory/memory_tree.h"

/* Bytes and blocks; estimates if the recording was sampled. */
typedef struct amount {
    double bytes;
    double blocks;
} amount;

/* The allocations of a stack in a pool. */
typedef struct row {
    uint32_t pool;
    uint32_t device;
    uint32_t node;
    amount at_peak;
    amount at_end;
    amount in_all;
} row;

typedef struct tables {
    const kpti_memory_dump *dump;
    kpti_out_file *out;
    kpti_memory_tree tree;
    kpti_u64_map by_key; /* index of a row + 1, by pool and node */
    row *rows;
    uint32_t count;
    uint32_t capacity;
} tables;

static row *row_of(tables *t, const kpti_memory_entry *e)
{
    const uint32_t node = kpti_memory_node_of(&t->tree, t->dump, e->stack);
    uint32_t *index = kpti_u64_map_at(&t->by_key, (uint64_t)e->pool << 32 | node);
    if (!index) return NULL;
    if (*index) return &t->rows[*index - 1];
    if (kpti_array_reach(&t->by_key.heap, &t->rows, &t->capacity, t->count, sizeof *t->rows) !=
        KPT_OK)
        return NULL;
    t->rows[t->count] = (row){.pool = e->pool, .device = e->device, .node = node};
    *index = t->count + 1;
    return &t->rows[t->count++];
}

static void add(amount *to, uint64_t size, double weight)
{
    to->bytes += (double)size * weight;
    to->blocks += weight;
}

static int count_all(tables *t)
{
    const kpti_memory_history *h = t->dump->history;
    for (uint64_t i = 0; i < h->count; i++) {
        const kpti_memory_entry *e = &h->entries[i];
        const double weight = kpti_memory_weight(e->size, h->sample_bytes);
        row *r;
        if (!(e->kind & KPTI_MEMORY_ALLOC)) continue;
        r = row_of(t, e);
        if (!r) return 0;
        add(&r->in_all, e->size, weight);
        if (kpti_memory_was_alive(h, i, h->peak_after)) add(&r->at_peak, e->size, weight);
        if (kpti_memory_was_alive(h, i, h->count)) add(&r->at_end, e->size, weight);
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
    const kpti_memory_dump *d = t->dump;
    const kpti_memory_history *h = d->history;
    const uint64_t last = h->count ? (uint64_t)h->entries[h->count - 1].time_ns : 0;
    const uint64_t peak = h->peak_after ? (uint64_t)h->entries[h->peak_after - 1].time_ns : 0;
    put(t, "{\"schema\":\"kpytrace.memory.1\",\n");
    put_field(t, "sample_bytes", h->sample_bytes, ",");
    put_field(t, "entries", h->count, ",");
    put_field(t, "entries_dropped", h->dropped, ",");
    put_field(t, "frees_of_earlier_blocks", h->unseen_frees, ",");
    put_field(t, "peak_time_ns", peak, ",");
    put_field(t, "end_time_ns", last, ",\n\"devices\":[");
    for (uint32_t i = 0; i < d->device_count; i++) {
        if (i) put(t, ",");
        put_text(t, (kpt_str){d->devices[i].name, strlen(d->devices[i].name)});
    }
}

static void put_stacks(tables *t)
{
    put(t, "],\n\"symbols\":[");
    for (uint64_t i = 0; i < t->dump->symbols->symbol_count; i++) {
        const kpt_symbol *s = kpti_memory_symbol(t->dump, i);
        put_comma(t, i);
        put(t, "[");
        put_text(t, s->qualname);
        put(t, ",");
        put_text(t, s->file);
        put(t, ",");
        put_number(t, s->line);
        put(t, "]");
    }
    put(t, "],\n\"nodes\":[");
    for (uint32_t i = 0; i < t->tree.count; i++) {
        put_comma(t, i);
        put(t, "[");
        put_number(t, t->tree.nodes[i].parent);
        put(t, ",");
        put_number(t, t->tree.nodes[i].symbol);
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
    put(t, "],\n\"rows\":[");
    for (uint32_t i = 0; i < t->count; i++) {
        const row *r = &t->rows[i];
        put_comma(t, i);
        put(t, "[");
        put_number(t, r->device);
        put(t, ",");
        put_number(t, r->node);
        put_amount(t, &r->at_peak);
        put_amount(t, &r->at_end);
        put_amount(t, &r->in_all);
        if (t->dump->has_reported) {
            put(t, ",");
            put_text(t, t->dump->pools[r->pool].category);
            put(t, ",");
            put_text(t, t->dump->pools[r->pool].owner);
        }
        put(t, "]");
    }
    put(t, "]}\n");
}

int kpti_memory_tables_write(const kpti_memory_dump *dump, kpti_out_file *out)
{
    tables t = {.dump = dump, .out = out};
    int whole = kpti_memory_tree_make(&t.tree, dump);
    if (!whole) return 0;
    whole = count_all(&t);
    if (whole) {
        put_head(&t);
        put_stacks(&t);
        put_rows(&t);
    }
    kpti_memory_tree_free(&t.tree);
    kpti_u64_map_free(&t.by_key);
    free(t.rows);
    return whole;
}
