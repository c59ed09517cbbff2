/* memory_history.h: allocations and frees in time order, each free with its allocation.
 *
 *   a FREE without a partner is that of a block from before the recording, or of a block whose allocation was
 *   dropped
 *   an ALLOC without a partner was alive at the end. An ALLOC whose partner is an ALLOC had ended before that
 *   one, which is at the same place; its free was lost
 *   blocks that were alive at the end do not overlap */
#ifndef KPTI_WRITERS_MEMORY_MEMORY_HISTORY_H
#define KPTI_WRITERS_MEMORY_MEMORY_HISTORY_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The kind of an entry. */
enum {
    KPTI_MEMORY_ALLOC = 1,
    KPTI_MEMORY_FREE = 2,
    KPTI_MEMORY_RESIZED = 4 /* a bit in addition to one of them */
};

typedef struct kpti_memory_entry {
    int64_t time_ns; /* Unix time */
    uint64_t address;
    uint64_t size; /* for a FREE the size of its block, 0 if not known */
    uint64_t os_tid;
    uint32_t stack;
    uint32_t
        partner;   /* index in entries + 1, or 0. On input: the order of entries with equal times */
    uint16_t pool; /* pool of the block; a FREE gets that of its block */
    uint16_t kind; /* KPTI_MEMORY_ALLOC or FREE, and RESIZED */
    uint16_t device; /* device of the pool */
    uint16_t space;  /* address space; space and address identify a block */
} kpti_memory_entry;

/* Live bytes and blocks. */
typedef struct kpti_memory_level {
    uint64_t bytes;
    uint64_t blocks;
} kpti_memory_level;

typedef struct kpti_memory_history {
    kpti_memory_entry *entries;
    uint64_t count; /* at most UINT32_MAX - 1 */
    uint64_t dropped;
    uint64_t unseen_frees;
    uint64_t sample_bytes; /* one byte in this many was sampled; 0: all blocks were recorded */
    kpti_memory_level end;
    kpti_memory_level peak; /* the most bytes alive, not weighted */
    double end_weighed;     /* represented bytes, used while partners are found */
    double peak_weighed;
    uint64_t peak_after; /* entries up to the peak of the represented bytes */
} kpti_memory_history;

/* Makes a history of the last MAX (0: all) of COUNT entries. It takes over ENTRIES, which are from malloc.
 * DROPPED is the number of missing entries. Returns 0 if there is no memory, or if there are too many entries. */
int kpti_memory_history_make(kpti_memory_history *history, kpti_memory_entry *entries,
                             uint64_t count, uint64_t dropped, uint64_t max, uint64_t sample_bytes);
void kpti_memory_history_free(kpti_memory_history *history);

/* Returns whether the block of entry I, an ALLOC, was alive after the first COUNT entries. */
int kpti_memory_was_alive(const kpti_memory_history *history, uint64_t i, uint64_t count);

/* Live bytes, entry by entry: by device and by space. There are at most as many spaces as devices. */
typedef struct kpti_memory_curves {
    uint64_t *of_device;
    uint64_t *of_space;
} kpti_memory_curves;
/* Returns 0 if there is no memory. */
int kpti_memory_curves_make(kpti_memory_curves *curves, uint32_t devices);
void kpti_memory_curves_free(kpti_memory_curves *curves);
void kpti_memory_curves_take(kpti_memory_curves *curves, const kpti_memory_history *history,
                             const kpti_memory_entry *entry);

/* Returns how many blocks a block of SIZE represents if one byte in MEAN was sampled. MEAN is 0 if all blocks
 * were recorded. */
double kpti_memory_weight(uint64_t size, uint64_t mean);

#ifdef __cplusplus
}
#endif
#endif
