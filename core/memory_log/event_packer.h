/* event_packer.h: turns events of threads into the records of writers/memory/memory_records.h, in the order of time, and
 * delivers them to a sink. Stacks, symbols and pools are delivered once, before the events that refer to them.
 *
 * One thread at a time. Memory is from malloc, since threads pack while they allocate. What the packer keeps grows with the
 * number of distinct stacks only. */
#ifndef KPTI_CORE_MEMORY_LOG_EVENT_PACKER_H
#define KPTI_CORE_MEMORY_LOG_EVENT_PACKER_H

#include "core/base/u64_map.h"
#include "core/memory_log/block_tags.h"
#include "core/recording/clock.h"
#include "writers/memory/memory_codec.h"
#include "writers/memory/memory_records.h"

/* Events of one thread, in order. Runs of the same thread are in order, too. */
typedef struct kpti_event_run {
    const kpti_memory_event *events;
    uint64_t count;
    uint64_t at; /* the next one */
    uint64_t os_tid;
    uint64_t high;  /* the last TIME event's counter */
    uint64_t ticks; /* of the next one, while runs are packed */
} kpti_event_run;

enum { KPTI_EVENT_RECORD_BYTES = 1 << 16 };

typedef struct kpti_event_packer {
    kpt_memory_sink_fn sink;
    void *sink_ctx;
    kpti_memory_pools *pools;
    uint64_t sample_bytes;
    kpt_status status;          /* the first failure; nothing is delivered after it */
    kpti_memory_packer *packer; /* NULL until the first event */
    uint32_t *nodes;            /* by number in the stack trie */
    uint64_t node_capacity;
    uint32_t node_count;
    uint32_t *symbols; /* by number of a code location */
    uint64_t symbol_capacity;
    uint32_t symbol_count;
    kpti_u64_map texts;
    uint32_t text_count;
    uint32_t *chain; /* stacks of which nodes are made */
    uint64_t chain_capacity;
    char *names; /* the next record of names */
    uint64_t names_capacity;
    uint64_t names_size;
    uint32_t names_count;
    unsigned char *events; /* the next record of events */
    uint32_t events_size;
    uint32_t events_count;
    uint32_t shift;
    uint64_t since_ticks; /* of the record's first event */
    uint32_t spaces[KPTI_POOLS];
    unsigned char known_pools[KPTI_POOLS];
} kpti_event_packer;

kpti_event_packer *kpti_event_packer_make(kpt_memory_sink_fn sink, void *sink_ctx,
                                          kpti_memory_pools *pools, uint64_t sample_bytes);
void kpti_event_packer_free(kpti_event_packer *packer);

/* Packs the events of RUNS up to UNTIL ticks, and advances each run. */
void kpti_event_packer_pack(kpti_event_packer *packer, kpti_event_run *runs, uint64_t count,
                            uint64_t until);
/* Delivers all that was packed, and a state at POINT. HZ is the counter's rate, or 0. Returns the packer's status. */
kpt_status kpti_event_packer_flush(kpti_event_packer *packer, const kpti_clock_point *point,
                                   uint64_t hz, uint64_t dropped);

#endif
