#include "execution_trace/output/tensors.h"

void kpti_et_tensors_free(kpti_et_tensors *t)
{
    kpti_et_ids_free(&t->ids, t->heap);
    kpti_et_ids_free(&t->storages, t->heap);
}

/* Compares all that the trace has of a tensor except for its ids: the head, the texts and the numbers. */
static int is_of(const kpti_et_kind *kind, const kpti_et_chunk *chunk, const uint64_t *words,
                 const kpti_et_tensor_view *t)
{
    if (kind->chunk != chunk || kind->first[0] != words[0] || kind->first[1] != words[1]) return 0;
    for (uint64_t i = 0; i < t->number_words; i++)
        if (kind->numbers[i] != t->numbers[i]) return 0;
    return 1;
}

static uint64_t hash_of(const kpti_et_chunk *chunk, const uint64_t *words,
                        const kpti_et_tensor_view *t)
{
    uint64_t hash = kpti_hash_spread((uint64_t)(uintptr_t)chunk ^ words[0] ^ words[1] << 7);
    for (uint64_t i = 0; i < t->number_words; i++)
        hash = kpti_hash_spread(hash ^ hash >> 29 ^ t->numbers[i]);
    return hash;
}

/* A kind is in one of two slots. A new one replaces the less recently used one. */
static uint64_t kind_of(kpti_et_tensors *t, const kpti_et_chunk *chunk, const uint64_t *words,
                        const kpti_et_tensor_view *view)
{
    kpti_et_kind *slots = &t->kinds[hash_of(chunk, words, view) >> 55 << 1];
    kpti_et_kind found;
    if (is_of(&slots[0], chunk, words, view)) return slots[0].kind;
    if (is_of(&slots[1], chunk, words, view))
        found = slots[1];
    else
        found = (kpti_et_kind){chunk, words, view->numbers, ++t->kind_count};
    slots[1] = slots[0];
    slots[0] = found;
    return found.kind;
}
_Static_assert(KPTI_ET_KINDS == 2 << (64 - 55), "as many bits are taken");

const uint64_t *kpti_et_tensor_check(kpti_et_tensors *t, const kpti_et_item *item,
                                     const uint64_t *at, uint64_t *kind)
{
    kpti_et_tensor_view view;
    const uint64_t *next = kpti_et_tensor_read(item, at, &view);
    const uint64_t *words;
    kpti_et_name *name;
    *kind = 0;
    if (!next) return NULL;
    words = kpti_et_tensor_words(item, at);
    *kind = kind_of(t, item->chunk, words, &view);
    name = kpti_et_name_slot(t, words);
    name->of = words;
    name->kind = *kind;
    name->size = 0;
    return next;
}

const kpti_et_name *kpti_et_tensor_add(kpti_et_tensors *t, const uint64_t *words)
{
    const kpt_tape_value head = kpti_et_value_head(words);
    const int has_generations = (head.flags & KPT_TAPE_GENERATIONS) != 0;
    kpti_et_name *name = kpti_et_name_slot(t, words);
    kpt_tape_tensor fixed;
    const uint64_t *generations = words + 1 + sizeof fixed / KPTI_ET_WORD;
    uint64_t id;
    uint64_t storage = 0; /* with symbolic sizes, the storage is unknown */
    char *end;
    memcpy(&fixed, words + 1, sizeof fixed);
    id = kpti_et_ids_of(&t->ids, t->heap, fixed.tensor_id, has_generations ? generations[0] : 0,
                        &t->next_id, &t->failed);
    if (!(head.flags & KPT_TAPE_NO_SIZES))
        storage = kpti_et_ids_of(&t->storages, t->heap, fixed.storage_id,
                                 has_generations ? generations[1] : 0, &t->next_id, &t->failed);
    if (name->of != words) name = &t->other;
    name->text[0] = '[';
    end = kpti_put_u64(name->text + 1, id);
    *end++ = ',';
    end = kpti_put_u64(end, storage);
    name->size = (uint8_t)(end - name->text);
    return name;
}
