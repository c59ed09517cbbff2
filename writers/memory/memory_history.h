/* memory_history.h: allocations and frees in the order of time, each free with its allocation.
 *
 *   an entry of the kind FREE without a partner is of a block from before the recording, or of one whose
 *   allocation was dropped
 *   an ALLOC without a partner was alive at the end; one whose partner is an ALLOC had ended by then, as
 *   that one lies where it was: its free was lost
 *   those that were alive at the end do not overlap */
#ifndef KPTI_WRITERS_MEMORY_MEMORY_HISTORY_H
#define KPTI_WRITERS_MEMORY_MEMORY_HISTORY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What an entry is. */
enum {
    KPTI_MEMORY_ALLOC = 1,
    KPTI_MEMORY_FREE = 2,
    KPTI_MEMORY_RESIZED = 4 /* a bit beside one of them */
};

typedef struct kpti_memory_entry {
    int64_t time_ns; /* Unix time */
    uint64_t address;
    uint64_t size; /* of a FREE its block's; 0 where that is not known */
    uint64_t os_tid;
    uint32_t stack;
    uint32_t
        partner; /* one more than its index in entries; 0: none. At first: the order of equal times */
    uint16_t pool;   /* that the block is of: a FREE gets its block's */
    uint16_t kind;   /* KPTI_MEMORY_ALLOC or FREE, and RESIZED */
    uint16_t device; /* that the pool is of */
    uint16_t space;  /* of addresses: a block is known by its space and address */
} kpti_memory_entry;

/* Bytes and blocks that are alive. */
typedef struct kpti_memory_level {
    uint64_t bytes;
    uint64_t blocks;
} kpti_memory_level;

typedef struct kpti_memory_history {
    kpti_memory_entry *entries;
    uint64_t count; /* at most UINT32_MAX - 1 */
    uint64_t dropped;
    uint64_t unseen_frees;
    uint64_t sample_bytes; /* one byte in so many was sampled; 0: all were */
    kpti_memory_level end;
    kpti_memory_level peak; /* the most of them, as they are */
    double end_weighed;     /* bytes that they stand for, while partners are found */
    double peak_weighed;
    uint64_t peak_after; /* entries up to the peak of what they stand for */
} kpti_memory_history;

/* Makes one of COUNT entries, which it owns from now on, with malloc's memory: of the last MOST of them, 0 =
 * all. DROPPED: how many are missing. 0: no memory, or more entries than fit. */
int kpti_memory_history_make(kpti_memory_history *history, kpti_memory_entry *entries,
                             uint64_t count, uint64_t dropped, uint64_t most,
                             uint64_t sample_bytes);
void kpti_memory_history_free(kpti_memory_history *history);

/* Whether the block of entry I, an ALLOC, was alive after the first COUNT entries. */
int kpti_memory_was_alive(const kpti_memory_history *history, uint64_t i, uint64_t count);

/* Bytes that are alive, entry by entry: by device, and by space, of which there are no more. */
typedef struct kpti_memory_curves {
    uint64_t *of_device;
    uint64_t *of_space;
} kpti_memory_curves;
/* 0: no memory. */
int kpti_memory_curves_make(kpti_memory_curves *curves, uint32_t devices);
void kpti_memory_curves_free(kpti_memory_curves *curves);
void kpti_memory_curves_take(kpti_memory_curves *curves, const kpti_memory_history *history,
                             const kpti_memory_entry *entry);

/* How many blocks one of SIZE stands for, where one byte in MEAN was sampled; 0: all were. */
double kpti_memory_weight(uint64_t size, uint64_t mean);

#ifdef __cplusplus
}
#endif
#endif
