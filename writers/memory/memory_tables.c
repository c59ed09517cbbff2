#include "writers/memory/memory_tables.h"

#include <math.h>

#include "abi/kpt_text.h"
#include "writers/encode/json_text.h"

enum { MAX_TEXT = 16384, BUFFER_BYTES = MAX_TEXT * KPTI_JSON_MAX_GROWTH };

typedef struct tables {
    const kpti_memory_history *history;
    const kpti_memory_sums *sums;
    kpti_memory_put_fn put;
    void *ctx;
    char *buffer;
} tables;

static void put(const tables *t, const char *text)
{
    t->put(t->ctx, text, strlen(text));
}

static void put_number(const tables *t, int64_t value)
{
    t->put(t->ctx, t->buffer, (size_t)(kpti_put_i64(t->buffer, value) - t->buffer));
}

static void put_text(const tables *t, kpt_str text)
{
    const size_t size = text.size < MAX_TEXT ? (size_t)text.size : MAX_TEXT;
    const char *end = kpti_json_escape(t->buffer, text.data, text.data ? size : 0);
    put(t, "\"");
    t->put(t->ctx, t->buffer, (size_t)(end - t->buffer));
    put(t, "\"");
}

/* Writes "KEY":VALUE and then BEHIND. */
static void put_field(const tables *t, const char *key, int64_t value, const char *behind)
{
    put(t, "\"");
    put(t, key);
    put(t, "\":");
    put_number(t, value);
    put(t, behind);
}

static void put_comma(const tables *t, uint64_t index)
{
    if (index) put(t, ",\n");
}

static void put_head(const tables *t)
{
    const kpti_memory_history *h = t->history;
    put(t, "{\"schema\":\"kpytrace.memory.1\",\n");
    put_field(t, "sample_bytes", (int64_t)h->sample_bytes, ",");
    put_field(t, "entries", (int64_t)t->sums->entries, ",");
    put_field(t, "entries_dropped", (int64_t)h->dropped, ",");
    put_field(t, "frees_of_earlier_blocks", (int64_t)t->sums->unseen_frees, ",");
    put_field(t, "begin_time_ns", t->sums->begin_ns, ",");
    put_field(t, "peak_time_ns", kpti_memory_sums_time(t->sums, t->sums->peak_ns), ",");
    put_field(t, "end_time_ns", kpti_memory_sums_time(t->sums, t->sums->end_ns), ",");
    put_field(t, "until_time_ns",
              kpti_memory_sums_time(t->sums, (uint64_t)h->states_at[1].monotonic_ns -
                                                 (uint64_t)h->states_at[0].monotonic_ns),
              ",\n\"devices\":[");
    for (uint32_t i = 0; i < h->names.device_count; i++) {
        if (i) put(t, ",");
        put_text(t, kpt_str_of(h->names.devices[i].name));
    }
}

static void put_stacks(const tables *t)
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

static void put_amount(const tables *t, const kpti_memory_amount *a)
{
    put(t, ",");
    put_number(t, llround(a->bytes));
    put(t, ",");
    put_number(t, llround(a->blocks));
}

static void put_rows(const tables *t)
{
    const kpti_memory_names *names = &t->history->names;
    put(t, "],\n\"rows\":[");
    for (uint32_t i = 0; i < t->sums->count; i++) {
        const kpti_memory_sum *s = &t->sums->sums[i];
        const kpti_pool_tags *pool = &names->pools[s->pool];
        put_comma(t, i);
        put(t, "[");
        put_number(t, pool->device);
        put(t, ",");
        put_number(t, s->stack);
        put_amount(t, kpti_memory_sum_at_peak(t->sums, s));
        put_amount(t, &s->now);
        put_amount(t, &s->in_all);
        if (names->has_reported) {
            put(t, ",");
            put_text(t, pool->category);
            put(t, ",");
            put_text(t, pool->owner);
        }
        put(t, "]");
    }
    put(t, "]");
}

static void put_temporary(const tables *t)
{
    uint64_t count = 0;
    if (t->sums->sample_bytes) return;
    put(t, ",\n");
    put_field(t, "temporary_within", t->sums->temporary.within, ",\n\"temporary\":[");
    for (uint32_t i = 0; i < t->sums->count; i++) {
        const kpti_memory_amount *temporary = &t->sums->sums[i].temporary;
        if (!(temporary->blocks > 0)) continue;
        put_comma(t, count++);
        put(t, "[");
        put_number(t, i);
        put_amount(t, temporary);
        put(t, "]");
    }
    put(t, "]");
}

static void put_line(const tables *t, const double *values, uint32_t count)
{
    put(t, "[");
    for (uint32_t i = 0; values && i < count; i++) {
        if (i) put(t, ",");
        put_number(t, llround(values[i]));
    }
    put(t, "]");
}

/* Writes a line for all devices together and one for each; that of a device without bytes is empty. */
static void put_lines(const tables *t, const char *key, int is_most)
{
    const kpti_memory_series *s = &t->sums->series;
    const kpti_memory_names *names = &t->history->names;
    put(t, key);
    for (uint32_t i = 0; i <= names->device_count; i++) {
        const uint32_t number = i ? names->devices[i - 1].slot + 1 : 0;
        const kpti_series_line *line = number <= KPTI_SERIES_DEVICES ? s->lines[number] : NULL;
        put_comma(t, i);
        put_line(t, !line ? NULL : is_most ? line->most : line->last, s->count);
    }
    put(t, "]");
}

static void put_series(const tables *t)
{
    put(t, ",\n\"series\":{");
    put_field(t, "step_ns", (int64_t)t->sums->series.step_ns, ",\n");
    put_lines(t, "\"last\":[", 0);
    put_lines(t, ",\n\"most\":[", 1);
    put(t, "}");
}

static void put_moments(const tables *t)
{
    const kpti_memory_moments *m = &t->sums->moments;
    uint64_t change = 0;
    put(t, ",\n\"moments\":[");
    for (uint32_t i = 0; i < m->count; i++) {
        put_comma(t, i);
        put(t, "[");
        put_number(t, (int64_t)m->moments[i].since_ns);
        put(t, ",[");
        for (int is_first = 1; change < m->moments[i].end; change++, is_first = 0) {
            const kpti_memory_change *c = &m->changes[change];
            if (!is_first) put(t, ",");
            put_number(t, c->sum);
            put(t, ",");
            put_number(t, c->bytes);
            put(t, ",");
            put_number(t, c->blocks);
        }
        put(t, "]]");
    }
    put(t, "]");
}

int kpti_memory_tables_put(const kpti_memory_history *history, const kpti_memory_sums *sums,
                           kpti_memory_put_fn put_bytes, void *ctx)
{
    tables t = {history, sums, put_bytes, ctx, malloc(BUFFER_BYTES)};
    if (!t.buffer) return 0;
    put_head(&t);
    put_stacks(&t);
    put_rows(&t);
    put_temporary(&t);
    put_series(&t);
    if (sums->has_moments) put_moments(&t);
    put(&t, "}\n");
    free(t.buffer);
    return 1;
}

static void put_to_file(void *out, const void *bytes, size_t size)
{
    kpti_out_put(out, bytes, size);
}

int kpti_memory_tables_put_file(const kpti_memory_history *history, const kpti_memory_sums *sums,
                                kpti_out_file *out)
{
    return kpti_memory_tables_put(history, sums, put_to_file, out);
}

int kpti_memory_tables_read(kpti_memory_history *h, int with_moments, kpti_memory_sums *sums)
{
    const uint64_t at_ns = (uint64_t)h->wanted.at_ns;
    kpti_memory_entry e;
    kpti_memory_sums_begin(sums, h->time.ns, h->sample_bytes, h->wanted.temporary_within);
    if (with_moments) kpti_memory_sums_keep_moments(sums, h->wanted.has_at ? &at_ns : NULL);
    kpti_memory_history_first(h);
    while (kpti_memory_history_next(h, &e))
        if (!kpti_memory_sums_take(sums, h->names.pools, &e)) return 0;
    return !h->failed && kpti_memory_sums_end(sums, &h->live);
}

int kpti_memory_tables_write(kpti_memory_history *history, kpti_out_file *out)
{
    kpti_memory_sums sums;
    const int whole = kpti_memory_tables_read(history, history->wanted.has_at, &sums) &&
                      kpti_memory_tables_put_file(history, &sums, out);
    kpti_memory_sums_free(&sums);
    return whole;
}
