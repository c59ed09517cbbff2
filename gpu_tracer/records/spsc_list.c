#include "gpu_tracer/records/spsc_list.h"

#include "core/base/assert.h"

enum { CHUNK_BYTES = 1 << 16 };

static kpti_list_chunk *add_chunk(kpti_list *list, kpti_gpu_budget *budget)
{
    kpti_list_chunk *chunk = kpti_budget_alloc(budget, CHUNK_BYTES);
    if (!chunk) return NULL;
    kpti_assert(list->item_size && list->item_size % sizeof *chunk->items == 0);
    chunk->bytes = CHUNK_BYTES;
    chunk->capacity = (uint32_t)((CHUNK_BYTES - sizeof *chunk) / list->item_size);
    if (list->last)
        atomic_store_explicit(&list->last->next, chunk, memory_order_release);
    else
        atomic_store_explicit(&list->first, chunk, memory_order_release);
    list->last = chunk;
    return chunk;
}

static void *item_of(const kpti_list *list, kpti_list_chunk *chunk, uint32_t index)
{
    return (char *)chunk->items + (size_t)index * list->item_size;
}

int kpti_list_add(kpti_list *list, kpti_gpu_budget *budget, const void *item)
{
    kpti_list_chunk *chunk = list->last;
    uint32_t count = chunk ? atomic_load_explicit(&chunk->count, memory_order_relaxed) : 0;
    if (!chunk || count == chunk->capacity) {
        chunk = add_chunk(list, budget);
        if (!chunk) return 0;
        count = 0;
    }
    /* Only the writer appends, and only to the last chunk. */
    kpti_assert(count < chunk->capacity &&
                !atomic_load_explicit(&chunk->next, memory_order_relaxed));
    memcpy(item_of(list, chunk, count), item, list->item_size);
    atomic_store_explicit(&chunk->count, count + 1, memory_order_release);
    return 1;
}

void kpti_list_splice(kpti_list *into, kpti_list *from)
{
    kpti_list_chunk *first = atomic_load_explicit(&from->first, memory_order_relaxed);
    kpti_assert(into->item_size == from->item_size && !first == !from->last);
    if (!first) return;
    if (into->last)
        atomic_store_explicit(&into->last->next, first, memory_order_release);
    else
        atomic_store_explicit(&into->first, first, memory_order_release);
    into->last = from->last;
    kpti_list_forget(from);
}

void kpti_list_forget(kpti_list *list)
{
    atomic_store_explicit(&list->first, NULL, memory_order_relaxed);
    list->last = NULL;
}

void kpti_list_free(kpti_list *list, kpti_gpu_budget *budget)
{
    kpti_list_chunk *chunk = atomic_load_explicit(&list->first, memory_order_acquire);
    while (chunk) {
        kpti_list_chunk *next = atomic_load_explicit(&chunk->next, memory_order_relaxed);
        kpti_budget_free(budget, chunk, chunk->bytes);
        chunk = next;
    }
    kpti_list_forget(list);
}

void *kpti_list_next(const kpti_list *list, kpti_list_position *place)
{
    if (!place->chunk) {
        place->chunk = atomic_load_explicit(&list->first, memory_order_acquire);
        place->index = 0;
    }
    while (place->chunk) {
        kpti_list_chunk *chunk = place->chunk;
        kpti_list_chunk *next;
        kpti_assert(place->index <= chunk->capacity);
        if (place->index < atomic_load_explicit(&chunk->count, memory_order_acquire))
            return item_of(list, chunk, place->index++);
        /* Move on only if the chunk has a successor; its count is then final. */
        next = atomic_load_explicit(&chunk->next, memory_order_acquire);
        if (!next) return NULL;
        if (place->index < atomic_load_explicit(&chunk->count, memory_order_acquire)) continue;
        place->chunk = next;
        place->index = 0;
    }
    return NULL;
}

/* The writer uses the first chunk only if it is the last. A chunk with a successor belongs to the reader. */
void kpti_list_free_read(kpti_list *list, const kpti_list_position *place, kpti_gpu_budget *budget)
{
    kpti_list_chunk *chunk = atomic_load_explicit(&list->first, memory_order_acquire);
    while (place->chunk && chunk != place->chunk) {
        kpti_list_chunk *next = atomic_load_explicit(&chunk->next, memory_order_acquire);
        kpti_assert(next); /* the reader's chunk is in the list, and the writer's is not freed */
        atomic_store_explicit(&list->first, next, memory_order_relaxed);
        kpti_budget_free(budget, chunk, chunk->bytes);
        chunk = next;
    }
}
