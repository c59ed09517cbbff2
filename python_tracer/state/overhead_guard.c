#include "python_tracer/state/overhead_guard.h"

#include "core/base/assert.h"
#include "core/base/host_heap.h"
#include "core/callstacks/function_table.h"
#include "python_tracer/state/tracing_lock.h"

/* MAX_SHORT: the number of different functions counted per chunk; if a chunk has more, they are not the
 * problem. MIN_CALLS: a function with fewer short calls in a chunk is never switched off, whatever others
 * cost. */
enum { MAX_SHORT = 256, MIN_CALLS = 64 };

typedef struct short_calls {
    uint32_t function;
    uint32_t count;
} short_calls;

static int reserve(const kpti_env *env, kpti_guard *guard)
{
    return kpti_host_array_reserve(env, &guard->functions, &guard->capacity, kpti_function_count(),
                                   sizeof *guard->functions);
}

static void add_short(short_calls *table, uint32_t function)
{
    for (uint32_t i = 0, at = function % MAX_SHORT; i < MAX_SHORT; i++) {
        short_calls *s = &table[(at + i) % MAX_SHORT];
        if (s->count && s->function != function) continue;
        s->function = function;
        s->count++;
        return;
    }
}

/* Whether the event at I is the exit of FUNCTION. A CALLER event at I (the line of the call) is skipped. */
static int is_left(const kpti_chunk *chunk, uint32_t i, uint32_t function)
{
    if (i < chunk->count && kpti_event_kind(chunk->events[i]) == KPTI_EVENT_CALLER) i++;
    return i < chunk->count && kpti_event_kind(chunk->events[i]) == KPTI_EVENT_EXIT &&
           kpti_event_number(chunk->events[i]) == function;
}

/* Counts the chunk's calls in GUARD and its short calls in TABLE. */
static void count_calls(kpti_guard *guard, const kpti_chunk *chunk, short_calls *table)
{
    for (uint32_t i = 0; i < chunk->count; i++) {
        kpti_event event = chunk->events[i];
        uint32_t function = kpti_event_number(event);
        if (kpti_event_is_long(kpti_event_kind(event))) i++;
        if (kpti_event_kind(event) != KPTI_EVENT_ENTER || function >= guard->capacity) continue;
        guard->functions[function].calls++;
        if (is_left(chunk, i + 1, function)) add_short(table, function);
    }
}

static int by_count(const void *a, const void *b)
{
    const short_calls *x = a;
    const short_calls *y = b;
    return (x->count < y->count) - (x->count > y->count);
}

static int is_python(uint32_t function)
{
    kpti_function_view view;
    return kpti_function_describe(NULL, function, &view) && view.kind == KPT_KIND_PYTHON;
}

int kpti_guard_check_locked(const kpti_env *env, kpti_guard *guard, uint32_t permille,
                            const kpti_chunk *chunk, uint64_t span_ns)
{
    short_calls table[MAX_SHORT] = {{0, 0}};
    uint64_t cost_ns = (uint64_t)chunk->count * KPTI_EVENT_COST_NS;
    uint64_t allowed_ns = span_ns / 1000 * permille;
    int switched = 0;
    kpti_assert(kpti_tracing_lock_is_mine() && kpti_chunk_is_valid(chunk));
    if (!reserve(env, guard)) return 0;
    count_calls(guard, chunk, table);
    qsort(table, MAX_SHORT, sizeof *table, by_count);
    for (int i = 0; i < MAX_SHORT && table[i].count >= MIN_CALLS && cost_ns > allowed_ns; i++) {
        kpti_guarded *f = &guard->functions[table[i].function];
        uint64_t saved_ns = 2 * (uint64_t)table[i].count * KPTI_EVENT_COST_NS;
        if (f->off || !is_python(table[i].function)) continue;
        f->off = 1;
        guard->off_count++;
        switched = 1;
        cost_ns -= saved_ns < cost_ns ? saved_ns : cost_ns;
    }
    return switched;
}

int kpti_guard_allows_locked(const kpti_guard *guard, uint32_t function)
{
    kpti_assert(kpti_tracing_lock_is_mine() && guard->off_count <= guard->capacity);
    return function >= guard->capacity || !guard->functions[function].off;
}

void kpti_guard_report(const kpti_env *env, const kpti_guard *guard)
{
    for (uint64_t i = 0; env->host.log && i < guard->capacity; i++) {
        kpti_function_view view;
        char text[1024];
        kpt_str message = {text, 0};
        if (!guard->functions[i].off || !kpti_function_describe(NULL, (uint32_t)i, &view)) continue;
        (void)snprintf(text, sizeof text, "overhead: stopped recording %.*s after %llu calls",
                       (int)view.display.size, view.display.data,
                       (unsigned long long)guard->functions[i].calls);
        message.size = strlen(text);
        env->host.log(env->host.ctx, KPT_LOG_INFO, message);
    }
}

void kpti_guard_free(const kpti_env *env, kpti_guard *guard)
{
    kpti_free(env, guard->functions, guard->capacity * sizeof *guard->functions);
    memset(guard, 0, sizeof *guard);
}
