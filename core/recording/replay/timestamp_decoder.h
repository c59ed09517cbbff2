/* timestamp_decoder.h: when the events of a thread happened: halves of a counter put together again, kept from
 * going backwards, and converted to nanoseconds block by block.
 *
 * Invariants: last_ticks <= most_ticks; what comes out never goes backwards, neither as ticks nor as
 * nanoseconds, whatever the events or the converter say. */
#ifndef KPTI_CORE_RECORDING_REPLAY_TIMESTAMP_DECODER_H
#define KPTI_CORE_RECORDING_REPLAY_TIMESTAMP_DECODER_H

#include <string.h>

#include "core/recording/recording.h"

enum { KPTI_TIMES_BLOCK = 1024 };

typedef struct kpti_times {
    kpt_convert_fn convert; /* NULL: a tick is a nanosecond */
    void *convert_ctx;
    uint64_t last_ticks; /* no later event lies before this … */
    uint64_t most_ticks; /* … or after this, the end of the run */
    uint64_t high;       /* the counter's upper half, as of the last EPOCH */
    int64_t last_ns;
    uint64_t repairs;   /* events that went backwards */
    uint32_t second_of; /* the kind whose second word is the next block's first; 0: none */
    uint32_t spare;
    uint64_t ticks[KPTI_TIMES_BLOCK];
    int64_t ns[KPTI_TIMES_BLOCK]; /* of the block's events; second words have one as well */
} kpti_times;

void kpti_times_init(kpti_times *times, kpt_convert_fn convert, void *convert_ctx);
/* Another run begins, and its ticks are bounded by it. */
void kpti_times_begin_run(kpti_times *times, uint64_t start_ticks, uint64_t stop_ticks);
/* Another chunk begins. */
void kpti_times_begin_chunk(kpti_times *times, uint64_t base_ticks);
/* The time of a moment that is no event, not before the last and not after the run. */
int64_t kpti_times_at(kpti_times *times, uint64_t ticks);
/* The same by itself: it may be any, and nothing that follows depends on it. */
int64_t kpti_times_of(const kpti_times *times, uint64_t ticks);
/* Fills ns for the chunk's next events, of which there are COUNT, and returns for how many. */
uint32_t kpti_times_block(kpti_times *times, const kpti_event *events, uint32_t count);

#endif
