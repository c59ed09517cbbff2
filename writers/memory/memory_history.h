/* memory_history.h: allocations and frees in the order of time, each free with the size of its block. They are read from the
 * records of memory_records.h, as often as a writer needs them, so that a history takes memory for its names and for the
 * blocks that are alive, and for nothing else.
 *
 *   open ──> first ──> next … ──> first ──> next … ──> close
 *
 * Of a recording that still runs, each record is taken when it is there: names and events of a delivery come before its state.
 *
 *   begin ──> take … ──> next … ──> take … ──> next … ──> close
 *
 * A block is identified by its address space and address. Where a block is allocated at the place of another one, that
 * one's free was lost: it ends then. Blocks that are alive at the end do not overlap. */
#ifndef KPTI_WRITERS_MEMORY_MEMORY_HISTORY_H
#define KPTI_WRITERS_MEMORY_MEMORY_HISTORY_H

#include "writers/memory/memory_codec.h"
#include "writers/memory/memory_live.h"
#include "writers/memory/memory_names.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where the records are. Bytes must live as long as the history. */
typedef struct kpti_memory_records {
    void *ctx;
    void (*rewind)(void *ctx);
    /* Returns 1, or 0 after the last record. */
    int (*next)(void *ctx, const char **bytes, uint64_t *size);
} kpti_memory_records;

typedef struct kpti_memory_entry {
    int64_t time_ns; /* Unix time */
    uint64_t address;
    uint64_t size; /* for a FREE the size of its block, 0 if not known */
    uint64_t os_tid;
    uint64_t index; /* from 0 */
    uint32_t stack; /* of an ALLOC: a node, or 0 */
    uint16_t pool;  /* pool of the block; a FREE gets that of its block */
    uint16_t kind;  /* KPTI_MEMORY_ALLOC or FREE, and RESIZED */
    uint32_t device;
    uint32_t space;
    int ends; /* blocks that end: 1 for a FREE of a known block, and for an ALLOC at the place of another one */
    kpti_memory_block ended; /* that block */
} kpti_memory_entry;

/* Live bytes and blocks. */
typedef struct kpti_memory_level {
    uint64_t bytes;
    uint64_t blocks;
} kpti_memory_level;

/* A line through the first and the last state. */
typedef struct kpti_memory_time {
    uint64_t ticks;
    int64_t ns;
    uint64_t whole; /* nanoseconds in a tick, and in 2^64 ticks */
    uint64_t fraction;
} kpti_memory_time;

/* What the tables have beside the blocks at the peak, at the end and in all. */
typedef struct kpti_memory_wanted {
    int has_at; /* the blocks that were alive at_ns after the begin, which is then the only moment */
    int64_t at_ns;
    uint32_t temporary_within; /* memory_temporary.h; 0: the default */
} kpti_memory_wanted;

typedef struct kpti_memory_history {
    kpti_memory_records records;
    kpti_memory_wanted wanted; /* zeroed: the owner sets it, and the pid, for the writers */
    kpti_memory_names names;
    uint64_t pid;
    uint64_t count; /* entries */
    uint64_t dropped;
    uint64_t merged;       /* allocations in the pool of their device alone */
    uint64_t sample_bytes; /* one byte in this many was sampled; 0: all blocks were recorded */
    uint32_t states;       /* 0: the records have no recording of memory */
    int is_damaged;        /* entries end where events cannot be unpacked */
    kpti_memory_time time; /* begins at the first state */
    kpti_memory_state states_at[2]; /* the first and the last state */
    /* The position of next. */
    uint64_t skip; /* events before the first entry */
    uint64_t at;   /* events read */
    kpti_memory_model *model;
    const unsigned char *bytes;
    const unsigned char *end;
    uint32_t left; /* events in this record */
    uint32_t shift;
    uint64_t os_tid;
    kpti_memory_live live;
    int failed; /* there was no memory */
} kpti_memory_history;

/* Reads the names of RECORDS. With MAX (0: all) only the last MAX events are entries. The caller closes the history in
 * either case. Returns KPT_OK, KPT_E_INVALID if names are damaged, or KPT_E_MEMORY. */
kpt_status kpti_memory_history_open(kpti_memory_history *history,
                                    const kpti_memory_records *records, uint64_t max);
void kpti_memory_history_close(kpti_memory_history *history);

/* Begins a history whose records are taken one by one. RECORDS has those with events that were taken and not read. Returns
 * KPT_OK or KPT_E_MEMORY; the caller closes the history in either case. */
kpt_status kpti_memory_history_begin(kpti_memory_history *history,
                                     const kpti_memory_records *records);
/* Takes a record, whose bytes must live as long as the history if it has names. Returns KPT_OK, KPT_E_INVALID for damaged
 * names, or KPT_E_MEMORY. *WHAT receives what it is, or 0. */
kpt_status kpti_memory_history_take(kpti_memory_history *history, const char *record, uint64_t size,
                                    uint32_t *what);

/* Begins to read entries, again. */
void kpti_memory_history_first(kpti_memory_history *history);
/* Returns 1, or 0 after the last entry, and where there is no memory: failed is then set. */
int kpti_memory_history_next(kpti_memory_history *history, kpti_memory_entry *entry);

/* Live bytes, entry by entry: by device and by space. There are at most as many spaces as devices. */
typedef struct kpti_memory_curves {
    uint64_t *of_device;
    uint64_t *of_space;
} kpti_memory_curves;
/* Returns 0 if there is no memory. */
int kpti_memory_curves_make(kpti_memory_curves *curves, const kpti_memory_history *history);
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
