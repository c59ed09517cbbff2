/* tensors.h: names a journal's tensors by their ids in the trace, and determines their kind. Tensors of one
 * kind differ only in their ids, as far as the trace has them. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_TENSORS_H
#define KPTI_EXECUTION_TRACE_OUTPUT_TENSORS_H

#include "core/base/hash.h"
#include "execution_trace/journal/value_read.h"
#include "execution_trace/output/string_buffer.h"
#include "execution_trace/output/tensor_ids.h"

enum { KPTI_ET_NAMES = 1024, KPTI_ET_KINDS = 1024 };
enum { KPTI_ET_MAX_NAME = 47 };

typedef struct kpti_et_name {
    const uint64_t *of; /* the tensor's position in the journal; NULL if the slot is empty */
    uint64_t kind;
    uint8_t size;                /* 0 before it has ids */
    char text[KPTI_ET_MAX_NAME]; /* [tensor,storage */
} kpti_et_name;

typedef struct kpti_et_kind {
    const kpti_et_chunk *chunk; /* NULL if the slot is empty */
    const uint64_t *first;      /* the first tensor of this kind */
    const uint64_t *numbers;    /* of that tensor */
    uint64_t kind;
} kpti_et_kind;

/* Starts as zeroes with a heap and the first id. */
typedef struct kpti_et_tensors {
    const kpti_heap *heap;
    kpti_et_ids ids;
    kpti_et_ids storages;
    uint64_t next_id;
    int failed; /* there was no memory */
    uint64_t kind_count;
    kpti_et_name other; /* for a tensor whose slot in names has another tensor */
    kpti_et_name names[KPTI_ET_NAMES];
    kpti_et_kind kinds[KPTI_ET_KINDS];
} kpti_et_tensors;

void kpti_et_tensors_free(kpti_et_tensors *t);

static inline kpti_et_name *kpti_et_name_slot(kpti_et_tensors *t, const uint64_t *words)
{
    return &t->names[kpti_hash_spread((uint64_t)(uintptr_t)words) >> 54];
}
_Static_assert(KPTI_ET_NAMES == 1 << (64 - 54), "as many bits are taken");

const uint64_t *kpti_et_tensor_check(kpti_et_tensors *t, const kpti_et_item *item,
                                     const uint64_t *at, uint64_t *kind);
const kpti_et_name *kpti_et_tensor_add(kpti_et_tensors *t, const uint64_t *words);

/* Checks the tensor at AT in ITEM. *KIND receives its kind. Returns the position behind it, or NULL if it
 * is invalid. Does not assign ids. */
static inline const uint64_t *kpti_et_tensor_take(kpti_et_tensors *t, const kpti_et_item *item,
                                                  const uint64_t *at, uint64_t *kind)
{
    const kpt_tape_value head = kpti_et_value_head(at);
    if (head.kind == KPT_TAPE_SAME && head.size < item->chunk_words) {
        const uint64_t *words = kpti_et_tensor_words(item, at);
        const kpti_et_name *name = kpti_et_name_slot(t, words);
        if (name->of == words) {
            *kind = name->kind;
            return at + 1;
        }
    }
    return kpti_et_tensor_check(t, item, at, kind);
}

/* Returns the name of the tensor at AT in ITEM, which was checked. The name is valid until the next call. */
static inline const kpti_et_name *kpti_et_tensor_name(kpti_et_tensors *t, const kpti_et_item *item,
                                                      const uint64_t *at)
{
    const uint64_t *words = kpti_et_tensor_words(item, at);
    const kpti_et_name *name = kpti_et_name_slot(t, words);
    return name->of == words && name->size ? name : kpti_et_tensor_add(t, words);
}

#endif
