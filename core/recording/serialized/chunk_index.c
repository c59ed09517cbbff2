#include "core/recording/serialized/chunk_index.h"

#include <string.h>

#include "core/base/host_heap.h"
#include "core/base/packed_words.h"
#include "core/base/varint.h"

/* A record begins where a block has space for the largest one. */
enum {
    NUMBERS = 12,
    MAX_RECORD_BYTES = sizeof(kpti_chunk *) + (size_t)NUMBERS * KPTI_MAX_VARINT,
    BLOCK_BYTES = 1 << 16
};

_Static_assert(MAX_RECORD_BYTES % _Alignof(kpti_chunk) == 0, "places are aligned");

static int is_full(uint32_t used)
{
    return used > BLOCK_BYTES - MAX_RECORD_BYTES;
}

static uint32_t aligned(size_t bytes)
{
    return (uint32_t)(bytes + _Alignof(kpti_chunk) - 1) & ~(uint32_t)(_Alignof(kpti_chunk) - 1);
}

/* Returns space for a record, or NULL if there is no memory. */
static char *reserve(kpti_chunk_index *index, const kpti_env *env)
{
    if (!index->block_count || is_full(index->used)) {
        char *block;
        if (!kpti_host_array_reserve(env, &index->blocks, &index->block_capacity,
                                     (uint64_t)index->block_count + 1, sizeof block))
            return NULL;
        block = kpti_alloc(env, BLOCK_BYTES);
        if (!block) return NULL;
        index->blocks[index->block_count++] = block;
        index->used = 0;
    }
    return index->blocks[index->block_count - 1] + index->used;
}

/* The first ticks differ little from the base, or are 0, which is 0 in a record, too. */
static uint64_t from_base(const kpt_chunk *chunk, uint64_t first_ticks)
{
    return first_ticks ? first_ticks - chunk->first_ticks + 1 : 0;
}

static uint64_t to_ticks(const kpt_chunk *chunk, uint64_t difference)
{
    return difference ? chunk->first_ticks + difference - 1 : 0;
}

kpti_chunk *kpti_chunk_index_add(kpti_chunk_index *index, const kpti_env *env,
                                 const kpt_chunk *chunk, uint32_t count, uint64_t first_ticks)
{
    const uint64_t data = (uintptr_t)chunk->data;
    char *const record = reserve(index, env);
    char *at;
    if (!record) return NULL;
    if (!index->count) index->first_data = data;
    {
        const uint64_t numbers[NUMBERS] = {chunk->format,
                                           chunk->thread,
                                           chunk->sequence,
                                           chunk->run,
                                           chunk->os_tid,
                                           chunk->first_ticks,
                                           chunk->last_ticks - chunk->first_ticks,
                                           chunk->dropped_before,
                                           data - index->first_data,
                                           chunk->size_bytes,
                                           count,
                                           from_base(chunk, first_ticks)};
        at = record + sizeof(kpti_chunk *); /* the block is zeroed: there is no next chunk */
        for (int i = 0; i < NUMBERS; i++)
            at = kpti_put_varint(at, numbers[i]);
    }
    index->used += aligned((size_t)(at - record));
    index->count++;
    return (kpti_chunk *)(void *)record;
}

void kpti_chunk_index_link(kpti_chunk *place, kpti_chunk *next)
{
    void *const record = place; /* which begins with the next chunk */
    memcpy(record, &next, sizeof next);
}

static const char *read_record(const kpti_chunk_index *index, const char *record,
                               kpti_indexed_chunk *out)
{
    const char *at = record + sizeof(kpti_chunk *);
    kpt_chunk *const chunk = &out->chunk;
    kpti_chunk *const head = &out->head;
    uint64_t numbers[NUMBERS];
    for (int i = 0; i < NUMBERS; i++)
        at = kpti_read_varint(at, &numbers[i]);
    KPT_INIT(chunk);
    memset(head, 0, sizeof *head);
    memcpy(&head->next, record, sizeof head->next);
    chunk->format = (uint32_t)numbers[0];
    chunk->thread = (uint32_t)numbers[1];
    chunk->sequence = head->sequence = (uint32_t)numbers[2];
    chunk->run = head->run = (uint32_t)numbers[3];
    chunk->os_tid = numbers[4];
    chunk->first_ticks = head->base_ticks = numbers[5];
    chunk->last_ticks = numbers[5] + numbers[6];
    chunk->dropped_before = head->dropped_before = numbers[7];
    head->events = (kpti_event *)(uintptr_t)(index->first_data + numbers[8]);
    chunk->data = head->events;
    chunk->size_bytes = numbers[9];
    head->count = head->capacity = (uint32_t)numbers[10];
    head->begun = to_ticks(chunk, numbers[11]);
    if (chunk->format & KPTI_PACKED_FORMAT) head->packed_bytes = (uint32_t)chunk->size_bytes;
    return at;
}

void kpti_chunk_index_read(const kpti_chunk_index *index, const kpti_chunk *place,
                           kpti_indexed_chunk *out)
{
    (void)read_record(index, (const char *)place, out);
}

int kpti_chunk_index_next(const kpti_chunk_index *index, kpti_chunk_walk *walk,
                          kpti_indexed_chunk *out)
{
    const char *record;
    if (walk->done == index->count) return 0;
    if (is_full(walk->at)) {
        walk->block++;
        walk->at = 0;
    }
    record = index->blocks[walk->block] + walk->at;
    walk->at += aligned((size_t)(read_record(index, record, out) - record));
    walk->done++;
    return 1;
}

void kpti_chunk_index_free(kpti_chunk_index *index, const kpti_env *env)
{
    for (uint32_t i = 0; i < index->block_count; i++)
        kpti_free(env, index->blocks[i], BLOCK_BYTES);
    kpti_free(env, index->blocks, index->block_capacity * sizeof *index->blocks);
}
