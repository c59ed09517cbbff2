/* cross_thread_span_ends.h: ends of host spans on another thread than that of the begin, or on a thread without
 * a stream. Such an end is not in any stream. It is stored here, and replay applies it to every thread that has
 * spans.
 *
 * Invariant: ticks never decrease. When there are KPTI_MAX_CROSS_THREAD_ENDS ends, the older half is dropped; a ring
 * has dropped the chunks of that time long before. */
#ifndef KPTI_CORE_RECORDING_REPLAY_CROSS_THREAD_SPAN_ENDS_H
#define KPTI_CORE_RECORDING_REPLAY_CROSS_THREAD_SPAN_ENDS_H

#include "abi/impl/kpti_impl.h"
#include "core/base/assert.h"
#include "core/recording/recording.h"

enum { KPTI_MAX_CROSS_THREAD_ENDS = 1 << 16 };

typedef struct kpti_cross_thread_ends {
    kpti_cross_thread_end *ends;
    uint64_t count;
    uint64_t capacity;
} kpti_cross_thread_ends;

static inline int kpti_cross_thread_ends_are_valid(const kpti_cross_thread_ends *f)
{
    return f->count <= f->capacity && f->count <= KPTI_MAX_CROSS_THREAD_ENDS &&
           (f->count < 2 || f->ends[f->count - 2].ticks <= f->ends[f->count - 1].ticks);
}

/* The caller allows one call at a time. If there is no memory the end is dropped, and the span lasts until the
 * run ends. */
void kpti_cross_thread_ends_add(const kpti_env *env, kpti_cross_thread_ends *cross_thread_ends,
                                uint32_t number, uint64_t ticks);
/* Makes OUT a copy. Returns 0 if there is no memory. */
int kpti_cross_thread_ends_copy(const kpti_env *env, const kpti_cross_thread_ends *from,
                                kpti_cross_thread_ends *out);
/* A zeroed FAR_ENDS is valid. */
void kpti_cross_thread_ends_free(const kpti_env *env, kpti_cross_thread_ends *cross_thread_ends);

#endif
