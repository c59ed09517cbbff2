/* memory_temporary.h: which blocks are temporary. A block is temporary if the thread that allocated it frees it before that
 * thread's next WITHIN allocations are complete: with 1 before any other allocation, with 2 after at most one. A block that
 * is resized is freed and allocated.
 *
 * A thread that allocates takes 4 bytes for each of WITHIN. When there are KPTI_TEMPORARY_THREADS of them, ended ones too,
 * all are forgotten, with their last WITHIN allocations. */
#ifndef KPTI_WRITERS_MEMORY_CHANGES_MEMORY_TEMPORARY_H
#define KPTI_WRITERS_MEMORY_CHANGES_MEMORY_TEMPORARY_H

#include "core/base/u64_map.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { KPTI_TEMPORARY_WITHIN = 2, KPTI_TEMPORARY_MAX_WITHIN = 1000, KPTI_TEMPORARY_THREADS = 4096 };

/* Initialized with zeroes and within. */
typedef struct kpti_memory_temporary {
    uint32_t within;
    kpti_u64_map by_thread; /* its number, from 1 */
    uint32_t thread_count;
    uint32_t *recent;   /* WITHIN numbers of allocations + 1 for each thread, as a ring */
    uint32_t *position; /* of the oldest, for each thread */
    uint64_t capacity;
    uint64_t position_capacity;
    uint64_t last_thread; /* and its number, since most entries are of the same thread */
    uint32_t last_number;
} kpti_memory_temporary;

/* Notes allocation NUMBER of a thread. Returns 0 if there is no memory. */
int kpti_memory_temporary_alloc(kpti_memory_temporary *temporary, uint64_t os_tid, uint32_t number);
/* Returns whether the block of allocation NUMBER, which the thread frees, is temporary. */
int kpti_memory_temporary_free(kpti_memory_temporary *temporary, uint64_t os_tid, uint32_t number);
void kpti_memory_temporary_close(kpti_memory_temporary *temporary);

#ifdef __cplusplus
}
#endif
#endif
