/* memory_records.h: the records in which a memory tracer delivers allocations, and which a .kpt file contains as records of
 * kind KPTI_KPT_MEMORY (docs/kpt.md). A record is a kpti_memory_record and its bytes. Records depend on those before
 * them: a reader reads all of them, in order. */
#ifndef KPTI_WRITERS_MEMORY_MEMORY_RECORDS_H
#define KPTI_WRITERS_MEMORY_MEMORY_RECORDS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    KPTI_MEMORY_STATE =
        1, /* a kpti_memory_state; the last one is valid, and the first fixes the time */
    KPTI_MEMORY_NAMES = 2, /* count items, each with one of the letters below */
    KPTI_MEMORY_EVENTS = 3 /* count events, packed by memory_codec.h */
};

/* The first byte of a name. Texts, symbols and nodes are numbered from 1, in order. All numbers are varints; those that
 * may be negative are in zigzag order. */
enum {
    KPTI_MEMORY_TEXT = 'T',   /* size, bytes */
    KPTI_MEMORY_SYMBOL = 'S', /* number of the function's name, number of its file's, line */
    KPTI_MEMORY_NODE = 'N',   /* number of the caller's node or 0, number of the symbol */
    KPTI_MEMORY_POOL =
        'P' /* number, device type, device index, stream, size of the category, category, size of the owner,
                              owner */
};

enum { KPTI_MEMORY_POOL_COUNT = 4096, KPTI_MEMORY_POOL_OTHER = 4, KPTI_MEMORY_OWN_POOLS = 5 };

typedef struct kpti_memory_record {
    uint32_t what;  /* KPTI_MEMORY_STATE … */
    uint32_t count; /* number of items */
    uint32_t shift; /* of events: the time is in units of 2^shift ticks */
    uint32_t spare;
} kpti_memory_record;

typedef struct kpti_memory_state {
    uint64_t ticks; /* the counter and the clocks at one time */
    int64_t monotonic_ns;
    int64_t unix_ns;
    uint64_t hz;      /* ticks per second, or 0 if the states tell it */
    uint64_t dropped; /* events that are missing */
    uint64_t merged;  /* allocations in the pool of their device alone */
    uint64_t sample_bytes;
} kpti_memory_state;

#ifdef __cplusplus
}
#endif
#endif
