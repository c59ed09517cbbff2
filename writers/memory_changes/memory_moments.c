#include "writers/memory_changes/memory_moments.h"

int kpti_memory_moments_changed(kpti_memory_moments *m, uint32_t index)
{
    if (!kpti_array_reserve(&kpti_malloc_heap, &m->sums, &m->sum_capacity, index + UINT64_C(1),
                            sizeof *m->sums))
        return 0;
    if (m->sums[index].is_changed) return 1;
    if (!kpti_array_reserve(&kpti_malloc_heap, &m->changed, &m->changed_capacity,
                            m->changed_count + 1, sizeof *m->changed))
        return 0;
    m->sums[index].is_changed = 1;
    m->changed[m->changed_count++] = index;
    return 1;
}

static int add_moment(kpti_memory_moments *m, uint64_t since_ns, kpti_moment_amount_fn amount,
                      const void *ctx)
{
    if (!kpti_array_reserve(&kpti_malloc_heap, &m->changes, &m->change_capacity,
                            m->change_count + m->changed_count, sizeof *m->changes))
        return 0;
    for (uint64_t i = 0; i < m->changed_count; i++) {
        kpti_moment_sum *before = &m->sums[m->changed[i]];
        int64_t bytes;
        int64_t blocks;
        amount(ctx, m->changed[i], &bytes, &blocks);
        if (bytes != before->bytes || blocks != before->blocks)
            m->changes[m->change_count++] =
                (kpti_memory_change){bytes - before->bytes, blocks - before->blocks, m->changed[i]};
        *before = (kpti_moment_sum){bytes, blocks, 0};
    }
    m->changed_count = 0;
    m->moments[m->count++] = (kpti_memory_moment){since_ns, m->change_count};
    return 1;
}

/* Adds the changes from BEGIN to END to those that moment PLACES, by sum, has from FIRST on. Returns 0 if there is no
 * memory. */
static int merge_changes(kpti_memory_moments *m, kpti_u64_map *places, uint64_t begin, uint64_t end,
                         uint64_t first, uint64_t *kept)
{
    for (uint64_t i = begin; i < end; i++) {
        const kpti_memory_change change = m->changes[i];
        uint32_t *place = kpti_u64_map_at(places, change.sum);
        if (!place) return 0;
        if (*place > first) {
            m->changes[*place - 1].bytes += change.bytes;
            m->changes[*place - 1].blocks += change.blocks;
        } else {
            m->changes[(*kept)++] = change;
            *place = (uint32_t)*kept;
        }
    }
    return 1;
}

/* Returns the first multiple of step_ns at SINCE_NS or after it. */
static uint64_t multiple_at(const kpti_memory_moments *m, uint64_t since_ns)
{
    return (since_ns + m->step_ns - 1) / m->step_ns;
}

/* Doubles step_ns, and makes one moment of those before each multiple of it, at the time of the last of them. */
static int join_moments(kpti_memory_moments *m)
{
    kpti_u64_map places = {0}; /* index + 1 of a sum's last change, among those that were merged */
    uint64_t begin = 0;
    uint64_t kept = 0;
    uint32_t count = 0;
    int whole = 1;
    m->step_ns *= 2;
    for (uint32_t i = 0; i < m->count && whole; i++) {
        const kpti_memory_moment last = m->moments[i];
        if (i + 1 < m->count &&
            multiple_at(m, last.since_ns) == multiple_at(m, m->moments[i + 1].since_ns))
            continue;
        whole = merge_changes(m, &places, begin, last.end, kept, &kept);
        begin = last.end;
        m->moments[count++] = (kpti_memory_moment){last.since_ns, kept};
    }
    kpti_u64_map_free(&places);
    if (!whole) return 0;
    m->count = count;
    m->change_count = kept;
    return 1;
}

static int bound(kpti_memory_moments *m)
{
    while (m->count > KPTI_MOMENTS || (m->count > 2 && m->change_count > KPTI_MOMENT_CHANGES))
        if (!join_moments(m)) return 0;
    return 1;
}

int kpti_memory_moments_before(kpti_memory_moments *m, uint64_t since_ns,
                               kpti_moment_amount_fn amount, const void *ctx)
{
    if (since_ns <= m->next_ns || (!m->step_ns && m->count)) return 1;
    if (!add_moment(m, m->next_ns, amount, ctx)) return 0;
    if (!m->step_ns) return 1;
    if (!bound(m)) return 0;
    m->next_ns = multiple_at(m, since_ns) * m->step_ns;
    return 1;
}

int kpti_memory_moments_end(kpti_memory_moments *m, uint64_t since_ns, kpti_moment_amount_fn amount,
                            const void *ctx)
{
    if (!m->step_ns) return m->count || add_moment(m, m->next_ns, amount, ctx);
    return add_moment(m, since_ns, amount, ctx) && bound(m);
}

void kpti_memory_moments_free(kpti_memory_moments *m)
{
    free(m->changes);
    free(m->sums);
    free(m->changed);
    memset(m, 0, sizeof *m);
}
