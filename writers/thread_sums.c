#include "writers/thread_sums.h"

#include "core/base/u64_map.h"

static int by_key(const void *left, const void *right)
{
    const kpti_thread_sum *a = left;
    const kpti_thread_sum *b = right;
    return (a->key > b->key) - (a->key < b->key);
}

static int by_calls(const void *left, const void *right)
{
    const kpti_thread_sum *a = left;
    const kpti_thread_sum *b = right;
    if (a->calls != b->calls) return a->calls < b->calls ? 1 : -1;
    if (a->own_ns != b->own_ns) return a->own_ns < b->own_ns ? 1 : -1;
    return by_key(a, b);
}

/* Makes one sum for each name. */
static void merge(kpti_thread_sums *s)
{
    uint64_t kept = 0;
    if (!s->count) return;
    qsort(s->sums, s->count, sizeof *s->sums, by_key);
    for (uint64_t i = 1; i < s->count; i++) {
        if (s->sums[i].key == s->sums[kept].key) {
            s->sums[kept].calls += s->sums[i].calls;
            s->sums[kept].own_ns += s->sums[i].own_ns;
        } else {
            s->sums[++kept] = s->sums[i];
        }
    }
    s->count = kept + 1;
}

/* Returns a new sum, or NULL if there is no memory. Threads of pools have the same names, so sums are merged before there is
 * space for more. */
static kpti_thread_sum *add_sum(kpti_thread_sums *s)
{
    if (s->count == s->capacity) {
        merge(s);
        if (s->count >= s->capacity / 2 &&
            !kpti_array_reserve(&s->heap, &s->sums, &s->capacity, s->capacity + 1, sizeof *s->sums))
            return NULL;
    }
    return s->sums ? &s->sums[s->count++] : NULL;
}

kpt_status kpti_thread_sums_add(kpti_thread_sums *s, kpt_str name, uint64_t calls, uint64_t own_ns)
{
    const uint64_t key = kpti_text_key(name);
    kpti_thread_sum *sum = s->count ? &s->sums[s->count - 1] : NULL;
    if (!sum || sum->key != key) {
        sum = add_sum(s);
        if (!sum) return KPT_E_MEMORY;
        *sum = (kpti_thread_sum){.key = key, .name = name};
    }
    sum->calls += calls;
    sum->own_ns += own_ns;
    return KPT_OK;
}

void kpti_thread_sums_finish(kpti_thread_sums *s)
{
    merge(s);
    if (s->count) qsort(s->sums, s->count, sizeof *s->sums, by_calls);
}

void kpti_thread_sums_free(kpti_thread_sums *s)
{
    kpti_heap_give(&s->heap, s->sums, s->capacity * sizeof *s->sums);
}
