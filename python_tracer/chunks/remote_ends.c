#include "python_tracer/chunks/remote_ends.h"

#include "core/base/growable_array.h"
#include "python_tracer/state/tracer_state.h"
#include "python_tracer/state/tracing_lock.h"

void kpti_remote_ends_leave_locked(kpti_stream *stream, uint32_t word)
{
    const uint32_t count = atomic_load_explicit(&stream->remote_end_count, memory_order_relaxed);
    kpti_assert(kpti_tracing_lock_is_mine());
    if (atomic_load_explicit(&stream->ended, memory_order_relaxed)) return;
    if (!kpti_array_reserve(&kpti_malloc_heap, &stream->remote_ends, &stream->remote_end_capacity,
                            (uint64_t)count + 1, sizeof *stream->remote_ends))
        return;
    stream->remote_ends[count] = word;
    atomic_store_explicit(&stream->remote_end_count, count + 1, memory_order_relaxed);
    /* The owner's next append then takes the slow path, which finds the ends. But a snapshot takes a stream without a limit
     * for one whose owner is outside its callback, so it must be the snapshot that removes the limit. */
    if (!stream->tracer->readers) atomic_store_explicit(&stream->limit, NULL, memory_order_relaxed);
}

uint32_t *kpti_remote_ends_take_locked(kpti_stream *stream, uint32_t *count)
{
    uint32_t *const ends = stream->remote_ends;
    kpti_assert(kpti_tracing_lock_is_mine());
    *count = atomic_load_explicit(&stream->remote_end_count, memory_order_relaxed);
    stream->remote_ends = NULL;
    stream->remote_end_capacity = 0;
    atomic_store_explicit(&stream->remote_end_count, 0, memory_order_relaxed);
    return ends;
}
