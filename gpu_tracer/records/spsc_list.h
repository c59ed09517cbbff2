/* spsc_list.h: a list of items of one size, in chunks. One thread appends; another thread may read at the
 * same time. The count and the next pointer of a chunk are stored with release, after the data that they
 * cover. */
#ifndef KPTI_GPU_TRACER_RECORDS_SPSC_LIST_H
#define KPTI_GPU_TRACER_RECORDS_SPSC_LIST_H

#include "gpu_tracer/records/budget.h"

typedef struct kpti_list_chunk {
    _Atomic(struct kpti_list_chunk *) next;
    _Atomic uint32_t count;
    uint32_t capacity;
    uint64_t bytes; /* of the chunk, with this head */
    uint64_t items[];
} kpti_list_chunk;

typedef struct kpti_list {
    _Atomic(kpti_list_chunk *) first;
    kpti_list_chunk *last;
    uint32_t item_size; /* a multiple of 8 */
} kpti_list;

/* Appends a copy of ITEM. Returns 0 if there is no memory. */
int kpti_list_add(kpti_list *list, kpti_gpu_budget *budget, const void *item);
/* Appends FROM's items to INTO. FROM is empty afterwards. */
void kpti_list_splice(kpti_list *into, kpti_list *from);
void kpti_list_free(kpti_list *list, kpti_gpu_budget *budget);
/* Empties the list without freeing memory, for the child of a fork, which can't know whether the list is
 * consistent. */
void kpti_list_forget(kpti_list *list);

/* Position of a reader; zeroes for the beginning. */
typedef struct kpti_list_position {
    kpti_list_chunk *chunk;
    uint32_t index;
    uint32_t spare;
} kpti_list_position;

/* Returns the next item, or NULL if there is none yet. */
void *kpti_list_next(const kpti_list *list, kpti_list_position *place);
/* Frees the chunks that the only reader has passed. The writer may append at the same time. */
void kpti_list_free_read(kpti_list *list, const kpti_list_position *place, kpti_gpu_budget *budget);

#endif
