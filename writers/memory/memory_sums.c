#include "writers/memory/memory_sums.h"

#include <math.h>

/* Later times, and earlier ones than the begin, are of damaged files: such an entry is taken as of the time of the last one. */
#define MAX_SINCE_NS (UINT64_C(1) << 62)

void kpti_memory_sums_begin(kpti_memory_sums *s, int64_t begin_ns, uint64_t sample_bytes,
                            uint32_t within)
{
    memset(s, 0, sizeof *s);
    s->sample_bytes = sample_bytes;
    s->begin_ns = begin_ns;
    s->temporary.within =
        within && within <= KPTI_TEMPORARY_MAX_WITHIN ? within : KPTI_TEMPORARY_WITHIN;
}

void kpti_memory_sums_keep_moments(kpti_memory_sums *s, const uint64_t *at_ns)
{
    s->has_moments = 1;
    s->moments.step_ns = at_ns ? 0 : KPTI_MOMENTS_FIRST_NS;
    s->moments.next_ns = at_ns ? *at_ns : KPTI_MOMENTS_FIRST_NS;
}

static kpti_memory_sum *sum_of(kpti_memory_sums *s, uint32_t pool, uint32_t stack)
{
    uint32_t *index = kpti_u64_map_at(&s->by_key, (uint64_t)pool << 32 | stack);
    if (!index) return NULL;
    if (*index) return &s->sums[*index - 1];
    if (kpti_array_reach(&kpti_malloc_heap, &s->sums, &s->capacity, s->count, sizeof *s->sums) !=
        KPT_OK)
        return NULL;
    s->sums[s->count] = (kpti_memory_sum){.pool = pool, .stack = stack, .peak = s->peak};
    *index = s->count + 1;
    return &s->sums[s->count++];
}

static void add(kpti_memory_amount *to, const kpti_memory_amount *amount, double sign)
{
    to->bytes += sign * amount->bytes;
    to->blocks += sign * amount->blocks;
}

static kpti_memory_amount amount_of(const kpti_memory_sums *s, uint64_t size)
{
    const double weight = kpti_memory_weight(size, s->sample_bytes);
    return (kpti_memory_amount){(double)size * weight, weight};
}

/* Adds to what is alive of a sum, which keeps what it had at the peak. Returns 0 if there is no memory. */
static int change(kpti_memory_sums *s, kpti_memory_sum *sum, uint32_t slot,
                  const kpti_memory_amount *amount, double sign)
{
    if (sum->peak != s->peak) {
        sum->at_peak = sum->now;
        sum->peak = s->peak;
    }
    add(&sum->now, amount, sign);
    add(&s->now, amount, sign);
    return kpti_memory_series_add(&s->series, slot, sign * amount->bytes) &&
           (!s->has_moments || kpti_memory_moments_changed(&s->moments, (uint32_t)(sum - s->sums)));
}

static int end_block(kpti_memory_sums *s, const kpti_pool_tags *pools, const kpti_memory_entry *e)
{
    const kpti_memory_block *block = &e->ended;
    const uint32_t pool = kpti_memory_block_pool(block);
    const kpti_memory_amount amount = amount_of(s, kpti_memory_block_size(block));
    kpti_memory_sum *sum = sum_of(s, pool, block->stack);
    if (!sum || !change(s, sum, pools[pool].slot, &amount, -1)) return 0;
    if (!s->sample_bytes && e->kind & KPTI_MEMORY_FREE &&
        kpti_memory_temporary_free(&s->temporary, e->os_tid, block->number))
        add(&sum->temporary, &amount, 1);
    return 1;
}

static int begin_block(kpti_memory_sums *s, const kpti_pool_tags *pools, const kpti_memory_entry *e)
{
    const kpti_memory_amount amount = amount_of(s, e->size);
    kpti_memory_sum *sum = sum_of(s, e->pool, e->stack);
    if (!sum || !change(s, sum, pools[e->pool].slot, &amount, 1)) return 0;
    add(&sum->in_all, &amount, 1);
    if (s->now.bytes > s->peak_bytes) {
        s->peak_bytes = s->now.bytes;
        s->peak_ns = s->end_ns;
        s->peak++;
    }
    return s->sample_bytes ||
           kpti_memory_temporary_alloc(&s->temporary, e->os_tid, (uint32_t)e->index);
}

static void live_amount(const void *sums, uint32_t index, int64_t *bytes, int64_t *blocks)
{
    const kpti_memory_sum *sum = &((const kpti_memory_sums *)sums)->sums[index];
    *bytes = llround(sum->now.bytes);
    *blocks = llround(sum->now.blocks);
}

int kpti_memory_sums_take(kpti_memory_sums *s, const kpti_pool_tags *pools,
                          const kpti_memory_entry *e)
{
    const uint64_t since_ns = (uint64_t)e->time_ns - (uint64_t)s->begin_ns;
    if (since_ns > s->end_ns && since_ns < MAX_SINCE_NS) s->end_ns = since_ns;
    if (s->has_moments && !kpti_memory_moments_before(&s->moments, s->end_ns, live_amount, s))
        return 0;
    kpti_memory_series_advance(&s->series, s->end_ns);
    s->entries++;
    if (e->ends && !end_block(s, pools, e)) return 0;
    if (e->kind & KPTI_MEMORY_ALLOC) return begin_block(s, pools, e);
    s->unseen_frees += !e->ends;
    return 1;
}

int kpti_memory_sums_end(kpti_memory_sums *s, kpti_memory_live *live)
{
    uint32_t *alive;
    uint32_t count;
    if (s->has_moments && !kpti_memory_moments_end(&s->moments, s->end_ns, live_amount, s))
        return 0;
    for (uint32_t i = 0; i < s->count; i++) {
        s->sums[i].at_peak = *kpti_memory_sum_at_peak(s, &s->sums[i]);
        s->sums[i].peak = s->peak;
        s->sums[i].now = (kpti_memory_amount){0, 0};
    }
    count = kpti_memory_live_list(live, &alive);
    for (uint32_t i = 0; i < count; i++) {
        const kpti_memory_block *block = kpti_memory_live_at(live, alive[i]);
        const kpti_memory_amount amount = amount_of(s, kpti_memory_block_size(block));
        kpti_memory_sum *sum = sum_of(s, kpti_memory_block_pool(block), block->stack);
        if (sum) add(&sum->now, &amount, 1);
    }
    return 1;
}

void kpti_memory_sums_free(kpti_memory_sums *s)
{
    kpti_u64_map_free(&s->by_key);
    free(s->sums);
    kpti_memory_series_free(&s->series);
    kpti_memory_temporary_close(&s->temporary);
    kpti_memory_moments_free(&s->moments);
    memset(s, 0, sizeof *s);
}
