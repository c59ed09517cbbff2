/* spsc_list.h: things of one size in chunks, appended by one thread. Another one may read meanwhile what has been
 * appended: the count and the link of a chunk are published after what they stand for. */
#ifndef KPTI_GPU_TRACER_RECORDS_SPSC_LIST_H
#define KPTI_GPU_TRACER_RECORDS_SPSC_LIST_H

#include "gpu_tracer/records/budget.h"

typedef struct kpti_list_chunk {
    _Atomic(struct kpti_list_chunk *) next;
    _Atomic uint32_t count;
    uint32_t room;
    uint64_t bytes; /* of the chunk, with this head */
    uint64_t items[];
} kpti_list_chunk;

typedef struct kpti_list {
    _Atomic(kpti_list_chunk *) first;
    kpti_list_chunk *last;
    uint32_t item_size; /* a multiple of 8 */
} kpti_list;

/* A copy of ITEM at the end; 0 where there is no room. */
int kpti_list_add(kpti_list *list, kpti_gpu_budget *budget, const void *item);
/* FROM's items behind INTO's; FROM is empty then. */
void kpti_list_splice(kpti_list *into, kpti_list *from);
void kpti_list_free(kpti_list *list, kpti_gpu_budget *budget);
/* Forgets all, without giving anything back: for a child of a fork that can't know what is whole. */
void kpti_list_forget(kpti_list *list);

/* Where a reader is; zeros: at the beginning. */
typedef struct kpti_list_place {
    kpti_list_chunk *chunk;
    uint32_t index;
    uint32_t spare;
} kpti_list_place;

/* The next item, or NULL where there is none yet. */
void *kpti_list_next(const kpti_list *list, kpti_list_place *place);
/* Gives back the chunks that the only reader has left behind; the writer may append meanwhile. */
void kpti_list_free_read(kpti_list *list, const kpti_list_place *place, kpti_gpu_budget *budget);

#endif
