/* open_at_end.h: the calls, operators and ranges that are open where a chunk ends, as the OPEN events with which the
 * next chunk of its thread begins. They are found in the chunk's own events, so a chunk can be begun without the GIL,
 * and on a thread without Python.
 *
 * It matches exits as replay does: an exit of a function that is open further down closes the calls above it, and one
 * that is not open is ignored. Garbage collections and spans without a name are not carried on. */
#ifndef KPTI_CORE_RECORDING_OPEN_AT_END_H
#define KPTI_CORE_RECORDING_OPEN_AT_END_H

#include "core/recording/recording.h"

/* A call or range that is open. */
typedef struct kpti_open_entry {
    uint32_t key;   /* of a call: its function's id; of a range: its number */
    uint32_t range; /* not 0: a range */
    uint32_t at;    /* index of its first event in the chunk */
    uint32_t end;   /* index after its last detail */
} kpti_open_entry;

/* Initialized with zeroes; free it with kpti_open_at_end_free. */
typedef struct kpti_open_at_end {
    kpti_event *events; /* the OPEN events with their details, outermost first */
    uint64_t count;
    uint64_t capacity;
    kpti_open_entry *open; /* used by kpti_open_at_end_find only */
    uint64_t open_count;
    uint64_t open_capacity;
} kpti_open_at_end;

/* Finds what is open after the first COUNT of EVENTS. The events of the result have no time yet. Returns 0, with an
 * empty result, if there is no memory. */
int kpti_open_at_end_find(kpti_open_at_end *found, const kpti_event *events, uint32_t count);
void kpti_open_at_end_free(kpti_open_at_end *found);

#endif
