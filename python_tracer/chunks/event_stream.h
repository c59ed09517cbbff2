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

#include <stdatomic.h>

#include "abi/impl/kpti_impl.h"
#include "core/recording/recording.h"

struct kpti_thread;
struct kpti_tracer;

#define KPTI_NO_BIT UINT32_MAX /* no mask is this */

/* How many open spans of the host's a stream remembers; one that it has forgotten ends like those that end
 * on another thread. */
enum { KPTI_OPEN_SPANS = 16 };

typedef struct kpti_stream {
    _Atomic(kpti_event *) cursor; /* the owner's; relaxed */
    _Atomic(kpti_event *) limit;  /* NULL, or where the room for short events ends */
    uint64_t begun;               /* kpti_ticks, when it began to record in this run */
    uint32_t high;                /* of the counter, at the event before */
    uint32_t bit;                 /* its tracer's, in masks */
    uint32_t enter_bit;           /* the same for enters; KPTI_NO_BIT: none is recorded quickly */
    uint32_t c_bit;               /* the same where it wants C calls, else 0 */
    uint32_t all_bit;             /* the same where it wants all callables, else 0 */
    uint32_t task_key;            /* the tracer's; 0: tasks are not wanted */
    uint32_t task;                /* the number for the coroutine that is being entered */
    uint32_t max_depth;           /* 0: none */
    uint32_t depth;           /* of Python calls, above the lowest point so far; with max_depth */
    struct kpti_stream *next; /* of the same thread, recording as well; the owner's */
    uint64_t (*clock)(void *ctx); /* the host's, with KPT_TICKS_HOST; NULL: kpti_ticks */
    void *clock_ctx;

    /* The slow path's, under the session's lock unless said otherwise. */
    _Atomic int ended;              /* the run is over, or the tracer is gone */
    struct kpti_tracer *tracer;     /* NULL once the tracer is gone */
    struct kpti_thread *thread;     /* NULL once the thread is gone */
    struct kpti_stream *sibling;    /* of the same tracer */
    struct kpti_stream *owned_next; /* of the same thread */
    struct kpti_stream *left_next;  /* of the same tracer, whose thread ended later */
    uint64_t left_ticks;            /* when its thread ended */
    kpti_chunk *first;
    kpti_chunk *last;  /* the one that is written, while it is not sealed */
    kpti_chunk *later; /* begun while a snapshot reads: joined to the others after it */
    kpti_chunk *given; /* the first one, if the sink took it while a snapshot was reading it */
    uint64_t idle;     /* 0, or which open calls were recorded for the thread, not by it */
    uint32_t handing;  /* KPTI_HANDING_*; while it is not 0 the first chunk stays */
    uint32_t attached; /* the host's thread_attach was called */
    uint32_t settled;  /* the last of the tracer's settlings in which it was seen out */
    uint32_t sealed;   /* last is complete: the next event begins a new chunk */
    uint32_t run;
    uint32_t index;         /* as a kpt_thread's: how many of the tracer's are older */
    _Atomic uint32_t spans; /* not 0: of the host's; the owner's, read by snapshots */
    uint32_t open_span_count;
    uint32_t open_spans[KPTI_OPEN_SPANS]; /* their numbers, the newest last; the owner's */
    uint32_t sequence;                    /* of the next chunk */
    uint64_t dropped;                     /* events lost since the last chunk */
    _Atomic uint64_t dropped_total;
    uint64_t chunk_ns; /* when the last chunk was begun; for the guard */
    uint64_t os_tid;
    uint64_t host_value;
    uint32_t thread_flags; /* KPT_THREAD_* */
    char name[64];
} kpti_stream;

/* Who hands the stream's chunks to the sink: nobody, one thread, or one that is to look again. */
enum { KPTI_HANDING_NOBODY = 0, KPTI_HANDING_ONE = 1, KPTI_HANDING_AGAIN = 2 };

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

/* What was open when a stream or chunk begins: functions, the outermost first, with their lines. */
typedef struct kpti_open_stack {
    const uint32_t *functions;
    const uint32_t *lines;
    const uint32_t *masks; /* the tracers that record the function */
    uint32_t count;
    uint32_t *memory;                 /* that all three are in */
    struct kpti_open_answer *answers; /* of hosts that watch them; by frame, the innermost first */
    uint32_t answer_count;
} kpti_open_stack;

/* What the host of the tracer BIT answered, of the frame at INDEX in memory. */
typedef struct kpti_open_answer {
    uint32_t index;
    uint32_t bit;
    uint64_t call_id;
    uint64_t answer;
} kpti_open_answer;

/* "_locked": the session's lock is held. */

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
