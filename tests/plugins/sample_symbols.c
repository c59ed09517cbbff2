/* sample_symbols.c: converts tracebacks to symbols. The delivered arrays are in memory that is freed after
 * the sink returns: each place once, followed by the frames that the host generated for it. */
#include <stdlib.h>

#include "tests/plugins/sample_traceback.h"

enum { MAX_GENERATED = 4 }; /* per place */

typedef struct words {
    kpt_symbol *symbols;
    uint32_t symbol_count;
    uint32_t *frames;
    uint64_t frame_count;
    kpt_symbol_span *spans;
    /* By the place's number: the index of its symbol, from 1, and how many generated symbols follow it. */
    uint32_t symbol_of[SAMPLE_PLACES + 1];
    uint32_t generated[SAMPLE_PLACES + 1];
    uint32_t place; /* the place for which the host is called */
} words;

/* calloc that returns one element for a count of 0. */
static void *array_of(uint64_t count, size_t size)
{
    return count < SIZE_MAX / 2 / size ? calloc(count + 1, size) : NULL;
}

kpt_status sample_flat_make(sample_flat *flat, uint64_t count, uint64_t each)
{
    *flat = (sample_flat){0};
    if (count > SIZE_MAX / 1024) return KPT_E_MEMORY;
    flat->places = array_of(count * each, sizeof *flat->places);
    flat->spans = array_of(count, sizeof *flat->spans);
    flat->same = array_of(count, sizeof *flat->same);
    if (flat->places && flat->spans && flat->same) return KPT_OK;
    sample_flat_free(flat);
    return KPT_E_MEMORY;
}

void sample_flat_free(sample_flat *flat)
{
    free(flat->places);
    free(flat->spans);
    free(flat->same);
}

static kpt_str copy_of(kpt_str text)
{
    char *copy = malloc(text.size + 1);
    if (!copy) return (kpt_str){NULL, 0};
    if (text.size) memcpy(copy, text.data, text.size);
    return (kpt_str){copy, text.size};
}

static void add_generated(void *ctx, kpt_str name, kpt_str file, uint32_t line)
{
    words *w = ctx;
    kpt_symbol *s = &w->symbols[w->symbol_count];
    if (w->generated[w->place] == MAX_GENERATED) return;
    w->generated[w->place]++;
    w->symbol_count++;
    s->kind = KPT_SYMBOL_GENERATED;
    s->name = s->qualname = copy_of(name);
    s->file = copy_of(file);
    s->line = line;
    s->column = s->end_column = KPT_NO_COLUMN;
}

static void add_symbol(words *w, uint32_t place, const kpt_tracebacks_args *args)
{
    const kpt_symbol *symbol;
    sample_lock();
    symbol = sample_symbol_locked(place);
    sample_unlock();
    w->symbols[w->symbol_count++] = *symbol;
    w->symbol_of[place] = w->symbol_count;
    w->place = place;
    if (symbol->kind == KPT_SYMBOL_PYTHON && args->generated)
        args->generated(args->generated_ctx, symbol->file, symbol->line, add_generated, w);
}

static void add_frames(words *w, uint32_t place)
{
    const uint32_t own = w->symbol_of[place] - 1;
    if (!wrong("R792")) w->frames[w->frame_count++] = own;
    for (uint32_t i = 1; i <= w->generated[place]; i++)
        w->frames[w->frame_count++] = own + i;
    if (wrong("R792")) w->frames[w->frame_count++] = own;
}

static void add_traceback(words *w, const sample_flat *flat, uint64_t i,
                          const kpt_tracebacks_args *args)
{
    const kpt_symbol_span from = flat->spans[i];
    kpt_symbol_span *span = &w->spans[i];
    if (flat->same[i] != i && !wrong("R788")) {
        *span = w->spans[flat->same[i]];
        return;
    }
    span->first = w->frame_count;
    for (uint64_t k = from.first; k < from.first + from.count; k++) {
        if (!w->symbol_of[flat->places[k]]) add_symbol(w, flat->places[k], args);
        add_frames(w, flat->places[k]);
    }
    span->count = w->frame_count - span->first;
}

static kpt_status hand(const words *w, uint64_t count, kpt_symbols_fn sink, void *sink_ctx)
{
    kpt_symbols all;
    KPT_INIT(&all);
    all.symbol_stride = sizeof *w->symbols;
    all.symbols = w->symbols;
    all.symbol_count = w->symbol_count;
    all.frames = w->frames;
    all.frame_count = w->frame_count;
    all.spans = w->spans;
    all.span_count = count;
    return sink(sink_ctx, &all);
}

static void free_words(const words *w)
{
    for (uint32_t i = 0; i < w->symbol_count; i++) {
        if (w->symbols[i].kind != KPT_SYMBOL_GENERATED) continue; /* places keep theirs */
        free((void *)(uintptr_t)w->symbols[i].name.data);
        free((void *)(uintptr_t)w->symbols[i].file.data);
    }
    free(w->symbols);
    free(w->frames);
    free(w->spans);
}

kpt_status sample_show(const sample_flat *flat, const kpt_tracebacks_args *args,
                       kpt_symbols_fn sink, void *sink_ctx)
{
    words w = {0};
    kpt_status status = KPT_E_MEMORY;
    const uint64_t most = flat->place_count * (1 + MAX_GENERATED);
    w.symbols = array_of(most, sizeof *w.symbols);
    w.frames = array_of(most, sizeof *w.frames);
    w.spans = array_of(flat->span_count, sizeof *w.spans);
    if (w.symbols && w.frames && w.spans) {
        for (uint64_t i = 0; i < flat->span_count; i++)
            add_traceback(&w, flat, i, args);
        status = hand(&w, flat->span_count, sink, sink_ctx);
        if (wrong("R789")) status = KPT_OK;
    }
    free_words(&w);
    return status;
}
