#include "core/recording/delivery/range_names.h"

#include "core/base/hash.h"
#include "core/base/host_heap.h"
#include "core/recording/operator_event.h"

typedef struct slot {
    kpt_str text; /* data is NULL in an empty slot */
    uint32_t scope;
    uint32_t index;
} slot;

static uint64_t hash_of(kpt_str text, uint32_t scope)
{
    return kpti_hash_mix(kpti_hash_bytes(KPTI_HASH_BYTES, text.data, text.size), scope);
}

static int is_used(const void *of)
{
    return ((const slot *)of)->text.data != NULL;
}

static int has_key(const void *of, const void *key, const void *ctx)
{
    const slot *const a = of;
    const slot *const b = key;
    (void)ctx;
    return a->scope == b->scope && a->text.size == b->text.size &&
           memcmp(a->text.data, b->text.data, a->text.size) == 0;
}

static uint64_t hash(const void *of, const void *ctx)
{
    const slot *const s = of;
    (void)ctx;
    return hash_of(s->text, s->scope);
}

static const kpti_hash_slots slots = {sizeof(slot), 64, is_used, has_key, hash};

void kpti_range_names_init(kpti_range_names *names, const kpti_env *env, uint32_t first)
{
    memset(names, 0, sizeof *names);
    names->env = env;
    names->next = first;
}

void kpti_range_names_free(kpti_range_names *names)
{
    const kpti_heap heap = kpti_host_heap(names->env);
    for (uint64_t i = 0; i < names->table.capacity; i++) {
        const slot *const s = kpti_hash_table_at(&names->table, &slots, i);
        if (is_used(s)) kpti_free(names->env, (char *)(uintptr_t)s->text.data, s->text.size + 1);
    }
    kpti_hash_table_free(&names->table, &slots, &heap);
}

/* Copies the name into OUT. A longer name, which only a damaged chunk has, is cut. */
static kpt_str spell(const kpti_event *events, uint32_t count, char *out)
{
    uint64_t size = 0;
    for (uint32_t i = 0; i < count && size <= KPTI_MAX_SPAN_NAME - KPTI_TEXT_BYTES; i++)
        size += kpti_text_read(events[i], out + size);
    return (kpt_str){out, size};
}

uint32_t kpti_range_names_find(kpti_range_names *names, const kpti_event *events, uint32_t count,
                               uint32_t scope, kpt_str *text, int *is_new)
{
    const kpti_heap heap = kpti_host_heap(names->env);
    char buffer[KPTI_MAX_SPAN_NAME];
    slot wanted = {.text = spell(events, count, buffer), .scope = scope};
    slot *found;
    char *copy;
    *is_new = 0;
    if (!kpti_hash_table_reserve(&names->table, &slots, &heap, NULL)) return 0;
    found = kpti_hash_table_find(&names->table, &slots, hash(&wanted, NULL), &wanted, NULL);
    if (!is_used(found)) {
        copy = kpti_alloc(names->env, wanted.text.size + 1);
        if (!copy) return 0;
        memcpy(copy, buffer, wanted.text.size);
        wanted.text.data = copy;
        wanted.index = names->next++;
        *found = wanted;
        names->table.count++;
        *is_new = 1;
    }
    *text = found->text;
    return found->index;
}
