/* event_stream.h: a stream receives one thread's events for one tracer. Only the owner thread appends.
 *
 *   stream ──> chunk ──> chunk ──> chunk      events from the chunk's first to cursor
 *
 * The hot path is one test and one store: cursor < limit, and the upper half of the tick counter as in the
 * previous event. A full chunk and a new upper half fail the test. The end of tracing and a snapshot move
 * limit, so that the test fails like that of a full chunk. The slow path then distinguishes the cases.
 *
 * Another thread ends or seals a stream without a lock on the hot path: it sets a flag, stores NULL to
 * limit, runs the asymmetric barrier, and waits until the owner has left its callback (kpti_thread.busy).
 * From then on each append takes the slow path, which reads the flags. */
#ifndef KPTI_PYTHON_TRACER_CHUNKS_EVENT_STREAM_H
#define KPTI_PYTHON_TRACER_CHUNKS_EVENT_STREAM_H

#include "core/base/assert.h"
#include "python_tracer/state/stream_state.h"

/* Space between limit and the end of a chunk, so that the words that follow an event need no test. */
enum { KPTI_SLACK = 8 };

/* The slow path of append. Returns 1 if the event was recorded, or 0 if it was dropped and counted, or the
 * stream has ended. Python may run in it, and callbacks inside this one with it. *TICKS is then the time
 * after them, for the words that follow. */
int kpti_stream_append_slow(kpti_stream *stream, uint32_t word, uint64_t *ticks);

/* Appends an event with the kind and number WORD if one store suffices. Returns 1 if it did. Owner thread
 * only. Budget: 2 ns. */
static inline int kpti_stream_append_quick(kpti_stream *stream, uint32_t word, uint64_t ticks)
{
    kpti_event *at = atomic_load_explicit(&stream->cursor, memory_order_relaxed);
    const kpti_event *limit = atomic_load_explicit(&stream->limit, memory_order_relaxed);
    if (__builtin_expect((uintptr_t)at >= (uintptr_t)limit || /* limit may be NULL */
                             (uint32_t)(ticks >> 32) != stream->high,
                         0))
        return 0;
    /* Without the prefetch, interpreters that use atomic operations everywhere wait for our stores to fresh
     * cache lines. */
    __builtin_prefetch(at + 32, 1);
    kpti_assert(at >= stream->last->events &&
                limit <= stream->last->events + stream->last->capacity);
    *at = (uint64_t)word << 32 | (uint32_t)ticks;
    atomic_store_explicit(&stream->cursor, at + 1, memory_order_relaxed);
    return 1;
}

/* Appends on the fast or the slow path. Returns 1 if the event was recorded. */
static inline int kpti_stream_append(kpti_stream *stream, uint32_t word, uint64_t *ticks)
{
    return kpti_stream_append_quick(stream, word, *ticks) ||
           kpti_stream_append_slow(stream, word, ticks);
}

/* The same for a stream whose host has its own clock. */
int kpti_stream_append_hosted(kpti_stream *stream, uint32_t word, uint64_t *now, uint64_t *at);

/* The same on the general path, where one event goes to several streams, at *NOW of kpti_ticks. *AT
 * receives the ticks for the words that follow in this stream, *NOW the time for the next stream. */
static inline int kpti_stream_append_now(kpti_stream *stream, uint32_t word, uint64_t *now,
                                         uint64_t *at)
{
    int kept;
    if (__builtin_expect(stream->clock != NULL, 0))
        return kpti_stream_append_hosted(stream, word, now, at);
    kept = kpti_stream_append(stream, word, now);
    *at = *now;
    return kept;
}

/* Appends a plain word after an event that was just recorded. The slack has space for it. */
static inline void kpti_stream_append_plain(kpti_stream *stream, uint64_t plain)
{
    kpti_event *at = atomic_load_explicit(&stream->cursor, memory_order_relaxed);
    kpti_assert(at < stream->last->events + stream->last->capacity);
    *at = plain;
    atomic_store_explicit(&stream->cursor, at + 1, memory_order_relaxed);
}

/* Makes sure that the current chunk has space for EVENTS more beside the slack. Returns 0 if
 * there is no memory, which is counted as a dropped event, or the stream has ended. *TICKS is updated as by append. */
int kpti_stream_make_space(kpti_stream *stream, uint32_t events, uint64_t *ticks);

/* Appends, after an ENTER, the line that the function was called from, if the line is not 0 and the
 * stream's tracer records such lines. */
static inline void kpti_stream_append_caller(kpti_stream *stream, uint32_t line, uint64_t ticks)
{
    if (line && stream->enter_bit == KPTI_NO_BIT)
        kpti_stream_append_plain(stream, kpti_event_make(KPTI_EVENT_CALLER, line, ticks));
}

/* Updates the depth for a Python call that is entered or left (KIND). Returns 1 if the call is within
 * max_depth. Only Python calls count: their enters and exits pair, while those of C calls do not always.
 * When a call that was open at the start ends, the base of the depth goes down with it. So a trace that is started
 * in __enter__ of a context manager counts the levels below the with statement. */
static inline int kpti_stream_within_depth(kpti_stream *stream, uint32_t kind)
{
    if (!stream->max_depth) return 1;
    if (kind == KPTI_EVENT_ENTER) return stream->depth++ < stream->max_depth;
    if (stream->depth > 0) stream->depth--;
    return stream->depth < stream->max_depth;
}

/* "_locked": the caller holds the tracing lock. */

/* Records the open calls of a thread that has had no event yet, in a stream without an owner. */
void kpti_stream_add_idle_locked(struct kpti_tracer *tracer, uint64_t os_tid, const char *name,
                                 kpti_open_stack open);
/* Begins to record in the tracer's current run, with the calls that are open at that time. */
void kpti_stream_begin_locked(kpti_stream *stream, kpti_open_stack open, uint64_t now);
/* Ends the stream's part in the run. Its owner may still be inside a callback. */
void kpti_stream_close(kpti_stream *stream);
/* Makes the owner's next append take the slow path, which finds its chunk sealed. */
void kpti_stream_trip(kpti_stream *stream);
/* Seals the last chunk. The caller is the owner, or the owner is outside its callback with limit NULL. */
void kpti_stream_seal_locked(kpti_stream *stream);
/* Joins the chunks that were begun while a snapshot was reading. */
void kpti_stream_join_locked(kpti_stream *stream);
/* Frees the stream's chunks, but not the stream. */
void kpti_stream_empty_locked(kpti_stream *stream);

#endif
