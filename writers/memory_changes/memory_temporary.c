#include "writers/memory_changes/memory_temporary.h"

static void forget_all(kpti_memory_temporary *t)
{
    const uint32_t within = t->within;
    kpti_memory_temporary_close(t);
    t->within = within;
}

/* Returns the number of a thread, or 0 if there is no memory. */
static uint32_t number_of(kpti_memory_temporary *t, uint64_t os_tid)
{
    uint32_t *known;
    if (t->last_number && t->last_thread == os_tid) return t->last_number;
    if (t->thread_count == KPTI_TEMPORARY_THREADS) forget_all(t);
    known = kpti_u64_map_at(&t->by_thread, os_tid & INT64_MAX);
    if (!known) return 0;
    if (!*known) {
        const uint64_t count = t->thread_count + UINT64_C(1);
        if (!kpti_array_reserve(&kpti_malloc_heap, &t->recent, &t->capacity, count * t->within,
                                sizeof *t->recent) ||
            !kpti_array_reserve(&kpti_malloc_heap, &t->position, &t->position_capacity, count,
                                sizeof *t->position))
            return 0;
        *known = ++t->thread_count;
    }
    t->last_thread = os_tid;
    return t->last_number = *known;
}

int kpti_memory_temporary_alloc(kpti_memory_temporary *t, uint64_t os_tid, uint32_t number)
{
    const uint32_t thread = number_of(t, os_tid);
    uint32_t *position;
    if (!thread) return 0;
    position = &t->position[thread - 1];
    t->recent[(uint64_t)(thread - 1) * t->within + *position] = number + 1;
    if (++*position == t->within) *position = 0;
    return 1;
}

int kpti_memory_temporary_free(kpti_memory_temporary *t, uint64_t os_tid, uint32_t number)
{
    const uint32_t thread = number_of(t, os_tid);
    const uint32_t *recent;
    if (!thread) return 0;
    recent = &t->recent[(uint64_t)(thread - 1) * t->within];
    for (uint32_t i = 0; i < t->within; i++)
        if (recent[i] == number + 1) return 1;
    return 0;
}

void kpti_memory_temporary_close(kpti_memory_temporary *t)
{
    kpti_u64_map_free(&t->by_thread);
    free(t->recent);
    free(t->position);
    memset(t, 0, sizeof *t);
}
