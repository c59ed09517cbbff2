/* timestamp_decoder.h: the times of a thread's events. It joins the halves of the counter, repairs ticks that
 * go backwards, and converts to nanoseconds block by block.
 *
 * Invariants: last_ticks <= most_ticks. Neither the decoded ticks nor the nanoseconds go backwards, whatever
 * the events contain or the converter returns. */
#ifndef KPTI_CORE_RECORDING_REPLAY_TIMESTAMP_DECODER_H
#define KPTI_CORE_RECORDING_REPLAY_TIMESTAMP_DECODER_H

#include <string.h>

#include "core/base/assert.h"
#include "core/recording/recording.h"

enum { KPTI_TIMES_BLOCK = 1024 };

typedef struct kpti_times {
    kpt_convert_fn convert; /* NULL: a tick is a nanosecond */
    void *convert_ctx;
    uint64_t last_ticks; /* lower bound for the next events */
    uint64_t most_ticks; /* upper bound: the end of the run */
    uint64_t high;       /* upper half of the counter, from the last EPOCH */
    int64_t last_ns;
    uint64_t repairs; /* events that went backwards */
    /* the next block begins with the second word of this kind; 0: it does not */
    uint32_t second_of;
    uint32_t untimed; /* events at the chunk's beginning that are not read for times */
    uint64_t ticks[KPTI_TIMES_BLOCK];
    int64_t ns[KPTI_TIMES_BLOCK]; /* of the block's events, second words included */
} kpti_times;

/* Whether the first COUNT times of the block are in order. */
static inline int kpti_times_are_valid(const kpti_times *times, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (times->ticks[i] < times->ticks[i - 1] || times->ns[i] < times->ns[i - 1]) return 0;
    return times->last_ticks <= times->most_ticks &&
           (!count || times->ns[count - 1] == times->last_ns);
}

/* Returns whether an event of this kind is one word with a time. */
static inline int kpti_times_is_plain(uint32_t kind)
{
    enum {
        PLAIN = 1 << KPTI_EVENT_ENTER | 1 << KPTI_EVENT_EXIT | 1 << KPTI_EVENT_OPEN |
                1 << KPTI_EVENT_LINE | 1 << KPTI_EVENT_GC_BEGIN | 1 << KPTI_EVENT_MARK |
                1 << KPTI_EVENT_SPAN_BEGIN | 1 << KPTI_EVENT_SPAN_END | 1 << KPTI_EVENT_CALLER
    };
    return PLAIN >> kind & 1;
}

void kpti_times_init(kpti_times *times, kpt_convert_fn convert, void *convert_ctx);
/* Begins a run, which bounds the ticks. */
void kpti_times_begin_run(kpti_times *times, uint64_t start_ticks, uint64_t stop_ticks);
/* Begins a chunk. The times of its first UNTIMED events, which are OPEN events and their details, are those of the last
 * event before them: older recorders copied details from earlier chunks with their low halves of the counter, which
 * mean another time here. */
void kpti_times_begin_chunk(kpti_times *times, uint64_t base_ticks, uint32_t untimed);
/* Returns the time at TICKS, which are not of an event, clamped to the last event and the end of the run. */
int64_t kpti_times_at(kpti_times *times, uint64_t ticks);
/* Converts TICKS without bounds and without changing the state. */
int64_t kpti_times_of(const kpti_times *times, uint64_t ticks);
/* Fills ns for the first of the COUNT remaining events of the chunk. Returns how many were filled. */
uint32_t kpti_times_block(kpti_times *times, const kpti_event *events, uint32_t count);

#endif
