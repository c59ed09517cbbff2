/* thread_sums.h: adds up the rows of a profile by the names of their threads, for `kpytrace info`. Memory grows with the
 * number of names, by 40 bytes. One thread at a time; no Python, no GIL. */
#ifndef KPTI_WRITERS_THREAD_SUMS_H
#define KPTI_WRITERS_THREAD_SUMS_H

#include "core/base/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The calls of all threads of a name. */
typedef struct kpti_thread_sum {
    uint64_t key; /* of the name: kpti_text_key */
    kpt_str name; /* the caller's */
    uint64_t calls;
    uint64_t own_ns;
} kpti_thread_sum;

/* Zeroed at first, except for the heap. */
typedef struct kpti_thread_sums {
    kpti_heap heap;
    kpti_thread_sum *sums; /* a name may have several, until it is finished */
    uint64_t capacity;
    uint64_t count;
} kpti_thread_sums;

/* Adds calls of a thread with NAME, which must live until free. Rows of one thread should come one after the other. Returns
 * KPT_OK or KPT_E_MEMORY. */
kpt_status kpti_thread_sums_add(kpti_thread_sums *sums, kpt_str name, uint64_t calls,
                                uint64_t own_ns);

/* After all rows: makes one sum for each name, the most calls first. */
void kpti_thread_sums_finish(kpti_thread_sums *sums);

void kpti_thread_sums_free(kpti_thread_sums *sums);

#ifdef __cplusplus
}
#endif
#endif
