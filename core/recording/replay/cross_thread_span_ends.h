/* cross_thread_span_ends.h: spans of the host's that end on another thread than they began on, or on one that has no
 * stream. Such an end is none of its own thread's events: it is kept here, and replay tells each thread
 * that has spans.
 *
 * Invariant: ticks never fall. When there are KPTI_MOST_FAR_ENDS the older half goes: a ring's chunks are
 * long gone by then. */
#ifndef KPTI_CORE_RECORDING_REPLAY_CROSS_THREAD_SPAN_ENDS_H
#define KPTI_CORE_RECORDING_REPLAY_CROSS_THREAD_SPAN_ENDS_H

#include "abi/impl/kpti_impl.h"
#include "core/recording/recording.h"

enum { KPTI_MOST_FAR_ENDS = 1 << 16 };

typedef struct kpti_far_ends {
    kpti_far_end *ends;
    uint64_t count;
    uint64_t room;
} kpti_far_ends;

/* The caller sees to it that there is one at a time. Without memory the end is forgotten: the span then
 * lasts as long as the run. */
void kpti_far_ends_add(const kpti_env *env, kpti_far_ends *far_ends, uint32_t number,
                       uint64_t ticks);
/* Makes OUT a copy; 0 when there is no memory. */
int kpti_far_ends_copy(const kpti_env *env, const kpti_far_ends *from, kpti_far_ends *out);
/* Zeroes are fine. */
void kpti_far_ends_free(const kpti_env *env, kpti_far_ends *far_ends);

#endif
