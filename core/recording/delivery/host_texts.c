#include "core/recording/delivery/host_texts.h"

#include "core/base/hash.h"
#include "core/base/host_heap.h"
#include "core/recording/operator_event.h"

typedef struct slot {
    uint64_t position; /* in texts, + 1; 0 in an empty slot */
    uint64_t hash;
} slot;

typedef struct key {
    kpt_str text;
    uint32_t scope;
} key;

static int is_used(const void *of)
{
    return ((const slot *)of)->position != 0;
}

static int has_key(const void *of, const void *wanted, const void *ctx)
{
    const kpti_host_texts *const texts = ctx;
    const kpti_host_text *const a = &texts->texts[((const slot *)of)->position - 1];
    const key *const b = wanted;
    return a->scope == b->scope && a->text.size == b->text.size &&
           memcmp(a->text.data, b->text.data, a->text.size) == 0;
}

static uint64_t hash(const void *of, const void *ctx)
{
    (void)ctx;
    return ((const slot *)of)->hash;
}

static const kpti_hash_slots slots = {sizeof(slot), 64, is_used, has_key, hash};

void kpti_host_texts_init(kpti_host_texts *texts, const kpti_env *env, uint32_t first)
{
    memset(texts, 0, sizeof *texts);
    texts->env = env;
    texts->first = first;
}

void kpti_host_texts_free(kpti_host_texts *texts)
{
    const kpti_heap heap = kpti_host_heap(texts->env);
    for (uint64_t i = 0; i < texts->count; i++)
        kpti_free(texts->env, (char *)(uintptr_t)texts->texts[i].text.data,
                  texts->texts[i].text.size + 1);
    kpti_free(texts->env, texts->texts, texts->capacity * sizeof *texts->texts);
    kpti_free(texts->env, texts->spelled, texts->spelled_capacity);
    kpti_hash_table_free(&texts->table, &slots, &heap);
}

/* Copies the bytes of the events to `spelled`, which has space for them. Returns how many. */
static uint64_t spell(kpti_host_texts *texts, const kpti_event *events, uint32_t count)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < count; i++)
        size += kpti_text_read(events[i], texts->spelled + size);
    return size;
}

/* Adds KEY. Returns 0 if there is no memory. */
static int add(kpti_host_texts *texts, const key *wanted)
{
    char *const copy = kpti_alloc(texts->env, wanted->text.size + 1);
    if (!copy) return 0;
    memcpy(copy, wanted->text.data, wanted->text.size);
    texts->texts[texts->count++] = (kpti_host_text){{copy, wanted->text.size}, wanted->scope, 0};
    return 1;
}

uint32_t kpti_host_texts_find(kpti_host_texts *texts, const kpti_event *events, uint32_t count,
                              uint32_t scope)
{
    const kpti_heap heap = kpti_host_heap(texts->env);
    uint64_t hashed;
    slot *found;
    key wanted = {.scope = scope};
    if (!kpti_hash_table_reserve(&texts->table, &slots, &heap, texts) ||
        !kpti_host_array_reserve(texts->env, &texts->texts, &texts->capacity, texts->count + 1,
                                 sizeof *texts->texts) ||
        !kpti_host_array_reserve(texts->env, &texts->spelled, &texts->spelled_capacity,
                                 (uint64_t)count * KPTI_TEXT_BYTES + 1, 1))
        return 0;
    wanted.text = (kpt_str){texts->spelled, spell(texts, events, count)};
    hashed =
        kpti_hash_mix(kpti_hash_bytes(KPTI_HASH_BYTES, wanted.text.data, wanted.text.size), scope);
    found = kpti_hash_table_find(&texts->table, &slots, hashed, &wanted, texts);
    if (!is_used(found)) {
        if (!add(texts, &wanted)) return 0;
        *found = (slot){texts->count, hashed};
        texts->table.count++;
    }
    return texts->first + (uint32_t)found->position - 1;
}

kpti_host_text *kpti_host_texts_at(kpti_host_texts *texts, uint32_t index)
{
    kpti_assert(index >= texts->first && index - texts->first < texts->count);
    return &texts->texts[index - texts->first];
}
