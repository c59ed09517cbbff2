#include "tests/native/callstacks/tables.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/callstacks/code_location.h"
#include "core/callstacks/function_table.h"
#include "core/callstacks/intern_table.h"
#include "core/callstacks/stack_trie.h"
#include "core/callstacks/symbolize.h"

typedef struct record {
    uint32_t chain;
    uint64_t content;
} record;

struct test_pool {
    kpti_intern_table pool;
    uint64_t hash_mask;
};

/* The records don't know their pool: one is tested at a time. */
static uint64_t hash_mask;

static uint64_t hash_of(const void *r)
{
    return kpti_hash_mix(0, ((const record *)r)->content) & hash_mask;
}

static int same(const void *r, const void *wanted)
{
    return ((const record *)r)->content == ((const record *)wanted)->content;
}

test_pool *pool_make(uint32_t max, uint64_t mask)
{
    test_pool *p = calloc(1, sizeof *p);
    if (!p) abort();
    hash_mask = p->hash_mask = mask;
    p->pool.record_size = sizeof(record);
    p->pool.max = max;
    p->pool.hash = hash_of;
    p->pool.same = same;
    return p;
}

uint32_t pool_find(test_pool *p, uint64_t content)
{
    const record r = {0, content};
    return kpti_intern_table_find(&p->pool, &r, hash_of(&r));
}

uint32_t pool_add(test_pool *p, uint64_t content)
{
    const record r = {0, content};
    return kpti_intern_table_add(&p->pool, &r, hash_of(&r));
}

void pool_remove(test_pool *p, uint32_t number)
{
    kpti_intern_table_remove(&p->pool, number);
}

uint64_t pool_content(test_pool *p, uint32_t number)
{
    return ((const record *)kpti_intern_table_at(&p->pool, number))->content;
}

uint32_t pool_used(const test_pool *p)
{
    return p->pool.used;
}

void pool_free(test_pool *p)
{
    for (int i = 0; i < KPTI_INTERN_TABLE_SEGMENTS; i++) {
        free(atomic_load(&p->pool.segments[i]));
        free(p->pool.buckets[i]);
    }
    free(p);
}

uint32_t stack_make(const uint32_t *locations, uint32_t count)
{
    uint32_t stack = 0;
    kpti_stacks_lock();
    for (uint32_t i = count; i > 0; i--)
        stack = kpti_stack_on_locked(stack, locations[i - 1]);
    kpti_stack_retain(stack);
    kpti_stacks_unlock();
    return stack;
}

void stack_retain(uint32_t stack)
{
    kpti_stack_retain(stack);
}

void stack_release(uint32_t stack)
{
    kpti_stack_release(stack);
}

uint32_t stack_below(uint32_t stack)
{
    return kpti_stack_below(stack);
}

uint32_t stack_place(uint32_t stack)
{
    return kpti_stack_place(stack);
}

void stacks_free_dead(uint64_t max)
{
    kpti_stacks_lock();
    kpti_stacks_free_dead_locked(max);
    kpti_stacks_unlock();
}

uint64_t stacks_nodes(void)
{
    return kpti_stacks_counts().nodes;
}

uint64_t stacks_dead(void)
{
    return kpti_stacks_counts().dead;
}

uint32_t place_told(uint32_t kind, const char *name, const char *file, uint32_t line)
{
    return kpti_code_location_reported(kind, kpt_str_of(name), kpt_str_of(file), line);
}

uint32_t place_python(const char *name, uint64_t offset, uint32_t line)
{
    kpti_function_view view = {.kind = KPT_KIND_PYTHON};
    kpti_code_location location = {
        .kind = KPT_SYMBOL_PYTHON, .where = offset, .line = line, .end_line = line};
    view.display = view.function = view.qualname = kpt_str_of(name);
    view.file = kpt_str_of("file.py");
    view.first_line = 1;
    atomic_init(&location.function, kpti_function_intern(&view));
    location.column = location.end_column = KPT_NO_COLUMN;
    return kpti_code_location_intern(&location);
}

uint32_t place_native(uint64_t address)
{
    const kpti_code_location location = {.kind = KPT_SYMBOL_NATIVE, .where = address};
    return kpti_code_location_intern(&location);
}

uint32_t places_end(void)
{
    return kpti_code_location_end();
}

kpt_symbol place_symbol(uint32_t number)
{
    return kpti_code_location_symbol(number);
}

static void *alloc_until(void *ctx, uint64_t size)
{
    uint32_t *left = ctx;
    if (*left == 1) return NULL;
    if (*left) --*left;
    return malloc(size);
}

static void dealloc(void *ctx, void *memory, uint64_t size)
{
    (void)ctx;
    (void)size;
    free(memory);
}

kpt_status symbolize(const kpt_traceback *tracebacks, uint64_t count, kpt_generated_fn generated,
                     void *generated_ctx, kpt_symbols_fn sink, void *sink_ctx, uint32_t fail_after)
{
    kpti_env env = {.host = {.ctx = &fail_after, .alloc = alloc_until, .dealloc = dealloc}};
    const kpti_symbolizer s = {&env, generated, generated_ctx, sink, sink_ctx};
    kpti_error error = {""};
    const kpt_status status = kpti_symbolize(&s, tracebacks, count, &error);
    if ((status != KPT_OK) != (error.text[0] != 0)) abort();
    return status;
}

kpt_status symbolize_places(const uint32_t *locations, uint64_t count, kpt_symbols_fn sink,
                            void *sink_ctx)
{
    const kpti_env env = {.host = {.ctx = NULL}};
    const kpti_symbolizer s = {&env, NULL, NULL, sink, sink_ctx};
    kpti_error error = {""};
    return kpti_symbolize_locations(&s, locations, count, &error);
}
