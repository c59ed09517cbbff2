#include "core/callstacks/symbolize.h"

#include "core/base/assert.h"
#include "core/base/hash.h"
#include "core/base/hash_table.h"
#include "core/base/host_heap.h"
#include "core/callstacks/code_location.h"
#include "core/callstacks/intern_table.h"
#include "core/callstacks/stack_trie.h"

/* Caches the result for a key: the symbols of a location, or the span of a traceback. */
typedef struct known {
    uint64_t key[2]; /* both 0 = free slot */
    uint64_t first;
    uint64_t count;
} known;

typedef struct work {
    const kpti_symbolizer *with;
    kpt_symbol *symbols;
    uint64_t symbol_count;
    uint64_t symbol_capacity;
    uint32_t *frames;
    uint64_t frame_count;
    uint64_t frame_capacity;
    kpt_symbol_span *spans;
    uint64_t span_count;
    uint64_t span_capacity;
    kpti_hash_table locations; /* of known; first and count refer to symbols */
    kpti_hash_table stacks;    /* of known; first and count refer to frames */
    int failed;                /* for lack of memory */
} work;

static int is_used(const void *slot)
{
    const known *k = slot;
    return (k->key[0] | k->key[1]) != 0;
}

static int has_key(const void *slot, const void *key, const void *ctx)
{
    (void)ctx;
    return memcmp(((const known *)slot)->key, key, sizeof(uint64_t[2])) == 0;
}

static uint64_t hash(const void *slot, const void *ctx)
{
    const known *k = slot;
    (void)ctx;
    return kpti_hash_mix(kpti_hash_mix(1, k->key[0]), k->key[1]);
}

static const kpti_hash_slots slots = {sizeof(known), 64, is_used, has_key, hash};

/* Returns the entry of a key, which may be new, or NULL if there is no memory. */
static known *know(work *w, kpti_hash_table *t, uint64_t a, uint64_t b)
{
    const kpti_heap heap = kpti_host_heap(w->with->env);
    const known wanted = {{a, b}, 0, UINT64_MAX};
    known *k;
    if (!kpti_hash_table_reserve(t, &slots, &heap, NULL)) {
        w->failed = 1;
        return NULL;
    }
    k = kpti_hash_table_find(t, &slots, hash(&wanted, NULL), wanted.key, NULL);
    if (!is_used(k)) {
        *k = wanted;
        t->count++;
    }
    return k;
}

static void add_symbol(work *w, kpt_symbol symbol)
{
    if (!kpti_host_array_reserve(w->with->env, &w->symbols, &w->symbol_capacity,
                                 w->symbol_count + 1, sizeof *w->symbols) ||
        w->symbol_count == UINT32_MAX) {
        w->failed = 1;
        return;
    }
    w->symbols[w->symbol_count++] = symbol;
}

/* A kpt_add_frame_fn for frames that the host reports for generated code. The function table owns
 * the strings. */
static void add_generated(void *ctx, kpt_str name, kpt_str file, uint32_t line)
{
    const uint32_t location = kpti_code_location_reported(KPT_SYMBOL_GENERATED, name, file, line);
    if (location) add_symbol(ctx, kpti_code_location_symbol(location));
}

/* Returns the symbols of a location, followed by those of its generated frames. */
static const known *symbols_of(work *w, uint32_t location)
{
    const kpti_symbolizer *with = w->with;
    known *k = know(w, &w->locations, location, 0);
    kpt_symbol symbol;
    uint64_t first;
    if (!k || k->count != UINT64_MAX) return k;
    first = w->symbol_count;
    symbol = kpti_code_location_symbol(location);
    add_symbol(w, symbol);
    if (with->generated && symbol.kind == KPT_SYMBOL_PYTHON)
        with->generated(with->generated_ctx, symbol.file, symbol.line, add_generated, w);
    k->first = first;
    k->count = w->symbol_count - first;
    return k;
}

static void add_place(work *w, uint32_t location)
{
    const known *k = symbols_of(w, location);
    if (!k) return;
    if (!kpti_host_array_reserve(w->with->env, &w->frames, &w->frame_capacity,
                                 w->frame_count + k->count, sizeof *w->frames)) {
        w->failed = 1;
        return;
    }
    for (uint64_t i = 0; i < k->count; i++)
        w->frames[w->frame_count++] = (uint32_t)(k->first + i);
}

/* Adds the innermost frame of a stack, and returns the stack below it. */
static uint32_t add_top(work *w, uint32_t stack)
{
    add_place(w, kpti_stack_place(stack));
    return kpti_stack_below(stack);
}

static void add_all(work *w, uint32_t stack)
{
    while (stack && !w->failed)
        stack = add_top(w, stack);
}

/* Whether the name of a symbol contains WORD. */
static int has(const kpt_symbol *symbol, const char *word)
{
    return memmem(symbol->name.data, symbol->name.size, word, strlen(word)) != NULL;
}

/* Merges the frames as torch does. The next Python frame precedes each native frame of Python's
 * interpreter. All script frames precede the first native frame of the script's interpreter. The
 * frames that are left follow at the end. */
static void merge(work *w, const kpt_traceback *t)
{
    uint32_t python = t->python;
    uint32_t script = t->script;
    for (uint32_t native = t->native; native && !w->failed; native = kpti_stack_below(native)) {
        const uint32_t location = kpti_stack_place(native);
        const known *k = symbols_of(w, location);
        if (!k || w->failed || !w->symbols) return;
        if (python && has(&w->symbols[k->first], "PyEval_EvalFrame")) python = add_top(w, python);
        if (script && has(&w->symbols[k->first], "InterpreterStateImpl::run")) {
            add_all(w, script);
            script = 0;
        }
        add_place(w, location);
    }
    add_all(w, script);
    add_all(w, python);
}

static void add_span(work *w, const kpt_symbol_span span)
{
    if (!kpti_host_array_reserve(w->with->env, &w->spans, &w->span_capacity, w->span_count + 1,
                                 sizeof *w->spans)) {
        w->failed = 1;
        return;
    }
    w->spans[w->span_count++] = span;
}

static void add_traceback(work *w, const kpt_traceback *t)
{
    const uint64_t a = (uint64_t)t->python << 32 | t->script;
    kpt_symbol_span span = {0, 0};
    known *k = NULL;
    if (a || t->native) {
        k = know(w, &w->stacks, a, t->native);
        if (!k) return;
        if (k->count == UINT64_MAX) {
            k->first = w->frame_count;
            merge(w, t);
            k->count = w->frame_count - k->first;
        }
        span = (kpt_symbol_span){k->first, k->count};
    }
    add_span(w, span);
}

static kpt_status hand_out(work *w, kpti_error *error)
{
    const kpti_symbolizer *with = w->with;
    const kpti_env *env = with->env;
    const kpti_heap heap = kpti_host_heap(env);
    kpt_status status;
    if (w->failed) {
        status = kpti_fail(error, KPT_E_MEMORY, "symbolize: no memory");
    } else {
        kpt_symbols all;
        KPT_INIT(&all);
        all.symbol_stride = sizeof(kpt_symbol);
        all.symbols = w->symbols;
        all.symbol_count = w->symbol_count;
        all.frames = w->frames;
        all.frame_count = w->frame_count;
        all.spans = w->spans;
        all.span_count = w->span_count;
        status = with->sink(with->sink_ctx, &all);
        if (status != KPT_OK)
            (void)kpti_fail(error, status, "symbolize: the sink returned %s",
                            kpt_status_name(status));
    }
    kpti_free(env, w->symbols, w->symbol_capacity * sizeof *w->symbols);
    kpti_free(env, w->frames, w->frame_capacity * sizeof *w->frames);
    kpti_free(env, w->spans, w->span_capacity * sizeof *w->spans);
    kpti_hash_table_free(&w->locations, &slots, &heap);
    kpti_hash_table_free(&w->stacks, &slots, &heap);
    return status;
}

kpt_status kpti_symbolize(const kpti_symbolizer *s, const kpt_traceback *tracebacks, uint64_t count,
                          kpti_error *error)
{
    work w = {.with = s};
    for (uint64_t i = 0; i < count && !w.failed; i++)
        add_traceback(&w, &tracebacks[i]);
    return hand_out(&w, error);
}

kpt_status kpti_symbolize_locations(const kpti_symbolizer *s, const uint32_t *locations,
                                    uint64_t count, kpti_error *error)
{
    work w = {.with = s};
    for (uint64_t i = 0; i < count; i++)
        if (locations[i] == 0 || locations[i] >= kpti_code_location_end() ||
            kpti_code_location_at(locations[i])->kind != KPT_SYMBOL_PYTHON)
            return kpti_fail(error, KPT_E_INVALID,
                             "symbolize_frames: get_frames never returned the number %u",
                             locations[i]);
    for (uint64_t i = 0; i < count && !w.failed; i++) {
        const uint64_t first = w.frame_count;
        add_place(&w, locations[i]);
        add_span(&w, (kpt_symbol_span){first, w.frame_count - first});
    }
    return hand_out(&w, error);
}
