/* event_stream.h: where one thread's events of one tracer go. The owner thread appends; nobody else writes.
 *
 *   stream ──> chunk ──> chunk ──> chunk      events from the chunk's first to cursor
 *
 * The hot path is one test and one store: cursor < limit, and the counter's high half as in the event
 * before. Everything else (a full chunk, a new high half, the end of tracing, a snapshot) is made to
 * look like a full chunk, by moving limit, and is sorted out in the slow path.
 *
 * How another thread ends or seals a stream, without a lock on the hot path: it sets a flag, moves
 * limit to NULL, runs the asymmetric barrier, and waits until the owner is out of its callback
 * (kpti_thread.busy). From then on each append goes the slow way, which looks at the flags. */
#ifndef KPTI_PYTHON_TRACER_CHUNKS_EVENT_STREAM_H
#define KPTI_PYTHON_TRACER_CHUNKS_EVENT_STREAM_H

#include "python_tracer/state/stream_state.h"

/* Room that limit leaves behind it, so that what follows an event needs no test of its own. */
enum { KPTI_SLACK = 8 };

/* The generic end of append: 1 if the event was recorded, 0 if it had to be dropped, and counted. Python may run in
 * it, and with that callbacks inside of this one: TICKS are then those behind them, for what follows. */
int kpti_stream_append_slow(kpti_stream *stream, uint32_t word, uint64_t *ticks);

/* Appends an event whose kind and number are WORD, if that needs no more than a store: 1 if so. Owner
 * thread only. Budget: 2 ns. */
static inline int kpti_stream_append_quick(kpti_stream *stream, uint32_t word, uint64_t ticks)
{
    kpti_event *at = atomic_load_explicit(&stream->cursor, memory_order_relaxed);
    const kpti_event *limit = atomic_load_explicit(&stream->limit, memory_order_relaxed);
    if (__builtin_expect((uintptr_t)at >= (uintptr_t)limit || /* which may be NULL */
                             (uint32_t)(ticks >> 32) != stream->high,
                         0))
        return 0;
    /* Interpreters with atomic operations everywhere wait for our stores to fresh lines otherwise. */
    __builtin_prefetch(at + 32, 1);
    *at = (uint64_t)word << 32 | (uint32_t)ticks;
    atomic_store_explicit(&stream->cursor, at + 1, memory_order_relaxed);
    return 1;
}

/* The same, whatever it takes; 1 if it was recorded. */
static inline int kpti_stream_append(kpti_stream *stream, uint32_t word, uint64_t *ticks)
{
    return kpti_stream_append_quick(stream, word, *ticks) ||
           kpti_stream_append_slow(stream, word, ticks);
}

/* The same for a stream whose host has a clock of its own. */
int kpti_stream_append_hosted(kpti_stream *stream, uint32_t word, uint64_t *now, uint64_t *at);

/* The same on the general way, where one event goes to several streams, at *NOW of kpti_ticks. *AT receives
 * the ticks for what follows it in this stream, *NOW the time for the next stream. */
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

/* Appends a plain word behind an event that was recorded just now: the slack has room for it. */
static inline void kpti_stream_append_plain(kpti_stream *stream, uint64_t plain)
{
    kpti_event *at = atomic_load_explicit(&stream->cursor, memory_order_relaxed);
    *at = plain;
    atomic_store_explicit(&stream->cursor, at + 1, memory_order_relaxed);
}

/* Behind an ENTER: the line that it was called from, if its tracer wants to know and it is not 0. */
static inline void kpti_stream_append_caller(kpti_stream *stream, uint32_t line, uint64_t ticks)
{
    if (line && stream->enter_bit == KPTI_NO_BIT)
        kpti_stream_append_plain(stream, kpti_event_make(KPTI_EVENT_CALLER, line, ticks));
}

/* Whether a Python call that is entered or left, as KIND says, is within the stream's depth; keeps count.
 * Python's enters and exits pair, C's do not always, so only the former count. A call that was open at
 * the start takes the base with it when it ends: whoever starts in __enter__ of a context manager means
 * the levels below the with. */
static inline int kpti_stream_within_depth(kpti_stream *stream, uint32_t kind)
{
    if (!stream->max_depth) return 1;
    if (kind == KPTI_EVENT_ENTER) return stream->depth++ < stream->max_depth;
    if (stream->depth > 0) stream->depth--;
    return stream->depth < stream->max_depth;
}

/* "_locked": the tracing lock is held. */

/* A stream of TRACER for the calling thread, which does not record yet. NULL: no memory. */
kpti_stream *kpti_stream_new_locked(struct kpti_tracer *tracer, struct kpti_thread *thread);
/* The open calls of a thread that has had no event yet; nobody writes to it. */
void kpti_stream_add_idle_locked(struct kpti_tracer *tracer, uint64_t os_tid, const char *name,
                                 kpti_open_stack open);
/* Makes such a stream the thread's own. */
void kpti_stream_adopt_locked(kpti_stream *stream, struct kpti_thread *thread);
/* The opposite: its thread is gone, or can't come back to it. */
void kpti_stream_abandon_locked(kpti_stream *stream);
/* Begins to record in the tracer's present run, with the calls that are open there. */
void kpti_stream_begin_locked(kpti_stream *stream, kpti_open_stack open, uint64_t now);
/* Ends the stream's part in the run; its owner may still be inside a callback. */
void kpti_stream_close(kpti_stream *stream);
/* Makes the owner's next append go the slow way, where it finds its chunk sealed. */
void kpti_stream_trip(kpti_stream *stream);
/* Completes the last chunk: the owner itself does it, or is out with its limit moved. */
void kpti_stream_seal_locked(kpti_stream *stream);
/* Joins chunks that were begun while a snapshot was read. */
void kpti_stream_join_locked(kpti_stream *stream);
/* Frees its chunks, but not the stream itself. */
void kpti_stream_empty_locked(kpti_stream *stream);

#endif
