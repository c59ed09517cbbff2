#include "python_tracer/chunks/stream_guard.h"

#include <time.h>

#include "python_tracer/state/overhead_guard.h"
#include "python_tracer/state/tracer_state.h"
#include "python_tracer/state/tracing_lock.h"

static uint64_t monotonic_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void kpti_stream_guard_begin(kpti_stream *stream)
{
    if (stream->tracer->args.overhead_permille) stream->chunk_ns = monotonic_ns();
}

void kpti_stream_guard_locked(kpti_stream *stream)
{
    kpti_tracer *tracer = stream->tracer;
    uint64_t now_ns;
    if (!tracer->args.overhead_permille || !stream->last) return;
    now_ns = monotonic_ns();
    if (stream->chunk_ns &&
        kpti_guard_check_locked(tracer->env, &tracer->guard, tracer->args.overhead_permille,
                                stream->last, now_ns - stream->chunk_ns))
        kpti_invalidate_caches();
    stream->chunk_ns = now_ns;
}

int kpti_stream_is_switched_off(const kpti_stream *stream, uint32_t word)
{
    const uint32_t kinds = (1U << KPTI_KIND_BITS) - 1;
    int off;
    if (!stream->tracer->args.overhead_permille || (word & kinds) != KPTI_EVENT_ENTER) return 0;
    kpti_tracing_lock();
    off = !kpti_guard_allows_locked(&stream->tracer->guard, word >> KPTI_KIND_BITS);
    kpti_tracing_unlock();
    return off;
}
