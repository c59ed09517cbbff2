#include "writers/findings/slowdown.h"

#include <stdlib.h>

#include "core/base/assert.h"

enum { FIRST_CALLS = 8, MAX_CALLS = 128 };

/* So many calls must be in the sample. */
enum { MIN_CALLS = 48 };

/* Calls are slower if the median of the last third is at least RATIO times that of the first, if a quarter of the last
 * third at most is faster than 5 / 4 of what three quarters of the first third are not slower than, and if the median of
 * the middle third is between these medians, with a quarter to spare: so neither a few slow calls nor calls of two kinds
 * that alternate are a finding. */
enum { RATIO = 2 };

static int sample_is_valid(const kpti_slowdown *s)
{
    return s->count <= s->capacity && s->capacity <= MAX_CALLS;
}

static int grow(kpti_slowdown *s, const kpti_heap *heap)
{
    const uint32_t capacity = s->capacity ? s->capacity * 4 : FIRST_CALLS;
    kpti_sampled_call *calls = kpti_heap_take(heap, capacity * sizeof *calls);
    if (!calls) return 0;
    if (s->count) memcpy(calls, s->calls, s->count * sizeof *calls);
    kpti_heap_give(heap, s->calls, s->capacity * sizeof *calls);
    s->calls = calls;
    s->capacity = capacity;
    return 1;
}

kpt_status kpti_slowdown_add_slow(kpti_slowdown *s, const kpti_heap *heap, int64_t start_ns,
                                  uint64_t ns)
{
    if (s->count == MAX_CALLS) { /* this call is between two that the sample has from now on */
        s->count = MAX_CALLS / 2;
        for (uint32_t i = 0; i < s->count; i++)
            s->calls[i] = s->calls[2 * i + 1];
        s->every_log2++;
        return KPT_OK;
    }
    s->seen = 0;
    if (s->count == s->capacity && !grow(s, heap)) return KPT_E_MEMORY;
    s->calls[s->count++] = (kpti_sampled_call){start_ns, ns};
    kpti_assert(sample_is_valid(s));
    return KPT_OK;
}

void kpti_slowdown_free(kpti_slowdown *s, const kpti_heap *heap)
{
    kpti_heap_give(heap, s->calls, s->capacity * sizeof *s->calls);
}

static int by_start(const void *left, const void *right)
{
    const kpti_sampled_call *a = left;
    const kpti_sampled_call *b = right;
    return (a->start_ns > b->start_ns) - (a->start_ns < b->start_ns);
}

static int by_time(const void *left, const void *right)
{
    const kpti_sampled_call *a = left;
    const kpti_sampled_call *b = right;
    return (a->ns > b->ns) - (a->ns < b->ns);
}

int kpti_slowdown_judge(kpti_slowdown *s, kpti_slower *out)
{
    const uint32_t third = s->count / 3;
    const uint32_t half = third / 2;
    kpti_sampled_call *first = s->calls;
    kpti_sampled_call *middle;
    kpti_sampled_call *last;
    if (s->count < MIN_CALLS) return 0;
    qsort(s->calls, s->count, sizeof *s->calls, by_start);
    middle = first + third;
    last = first + (s->count - third);
    qsort(first, third, sizeof *first, by_time);
    qsort(middle, third, sizeof *middle, by_time);
    qsort(last, third, sizeof *last, by_time);
    *out = (kpti_slower){first[half].ns, last[half].ns, last[half].start_ns};
    return out->last_ns / RATIO >= out->first_ns &&
           last[third / 4].ns >= first[third - 1 - third / 4].ns / 4 * 5 &&
           middle[half].ns >= out->first_ns / 4 * 3 && middle[half].ns <= out->last_ns / 4 * 5;
}
