/* stream_state.h: the fields of a stream (event_stream.h), which receives one thread's events for one
 * tracer. */
#ifndef KPTI_PYTHON_TRACER_STATE_STREAM_STATE_H
#define KPTI_PYTHON_TRACER_STATE_STREAM_STATE_H

#include <stdatomic.h>

#include "abi/impl/kpti_impl.h"
#include "core/base/assert.h"
#include "core/recording/open_at_end.h"
#include "core/recording/recording.h"

struct kpti_thread;
struct kpti_tracer;

#define KPTI_NO_BIT UINT32_MAX /* equals no mask */

/* The number of open host spans that a stream remembers. The end of a forgotten span is handled like the
 * end of a span on another thread. */
enum { KPTI_OPEN_SPANS = 16 };

typedef struct kpti_stream {
    _Atomic(kpti_event *) cursor; /* written by the owner; relaxed */
    _Atomic(kpti_event *) limit;  /* NULL, or where the space for short events ends */
    struct kpti_stream *next;     /* the thread's next recording stream; the owner's */
    uint64_t direct_handle; /* the host's, if operators take the fast path; else 0; the owner's */
    uint64_t direct_token;  /* the token of an operator without its function's id */
    uint64_t direct_thread; /* the host's number of the thread in its last operator */
    uint32_t high;          /* upper half of the tick counter at the last event */
    uint32_t bit;           /* its tracer's bit in masks */
    uint32_t enter_bit;     /* the same for enters; KPTI_NO_BIT: no fast path */
    uint32_t c_bit;         /* the bit if the tracer records C calls, else 0 */
    uint32_t all_bit;       /* the bit if it records all callables, else 0 */
    uint32_t task_key;      /* the tracer's; 0: tasks are not recorded */
    uint32_t task;          /* the number for the coroutine being entered */
    uint32_t max_depth;     /* 0: no limit */
    uint32_t depth; /* of Python calls, above the lowest point so far; used with max_depth */
    uint64_t begun; /* kpti_ticks when it began to record in this run */
    uint64_t (*clock)(void *ctx); /* the host's clock, with KPT_TICKS_HOST; NULL: kpti_ticks */
    void *clock_ctx;

    /* The fields below belong to the slow path and are guarded by the tracing lock unless noted otherwise. */
    _Atomic int ended;                 /* the run is over, or the tracer is destroyed */
    struct kpti_tracer *tracer;        /* NULL once the tracer is destroyed */
    struct kpti_thread *thread;        /* NULL before its first event and once it has ended */
    struct kpti_stream *sibling;       /* the next stream of the same tracer */
    struct kpti_stream **sibling_link; /* what points to this stream in that list */
    struct kpti_stream *owned_next;    /* the next stream of the same thread */
    struct kpti_stream *left_next; /* the next stream whose thread has ended (ended_streams.h) */
    uint64_t left_ticks;           /* when its thread ended */
    kpti_chunk *first;
    kpti_chunk *last;        /* the chunk being written, until it is sealed */
    kpti_chunk *later;       /* begun while a snapshot reads; joined to the others afterwards */
    kpti_chunk *given;       /* the first chunk, taken by the sink, but not freed yet */
    uint64_t idle;           /* 0, or a digest of the open calls recorded on the thread's behalf */
    uint32_t sink_state;     /* KPTI_SINK_*; while it is not 0 the first chunk stays */
    uint32_t attached;       /* the host's thread_attach was called */
    uint32_t is_in_use;      /* its thread has ended, but a suspended callback may use it */
    uint32_t quiesced_round; /* the last of quiesce_rounds that saw its thread outside */
    uint32_t sealed;         /* last is complete; the next event begins a new chunk */
    uint32_t run;
    uint32_t index;         /* the number of streams that the tracer made before */
    uint32_t rank;          /* its thread's number in the copy that is being made */
    uint32_t described;     /* KPTI_DESCRIBED_*: what a flush has sent of its thread in this run */
    _Atomic uint32_t spans; /* not 0: has host spans; the owner writes it, snapshots read it */
    _Atomic uint32_t
        host_writes;         /* the same for all that the host records, maybe without the GIL */
    _Atomic uint32_t format; /* the same: KPTI_CHUNK_FORMAT_* that its events need */
    uint32_t open_span_count;
    uint32_t open_spans[KPTI_OPEN_SPANS]; /* their numbers, the newest last; the owner's */
    /* What is open at the end of the last chunk, once that is sealed, if each chunk must begin with it and the
     * next one may be begun without the GIL. */
    kpti_open_at_end open_at_end;
    uint32_t open_at_end_is_known;
    _Atomic uint32_t remote_end_count; /* the owner reads it without the lock */
    uint32_t *remote_ends;             /* left by other threads (remote_ends.h) */
    uint64_t remote_end_capacity;
    struct kpti_inputs_cache *inputs; /* of operators; NULL before the first ones; the owner's */
    uint32_t sequence;                /* of the next chunk */
    uint64_t dropped;                 /* events lost since the last chunk */
    _Atomic uint64_t dropped_total;
    uint64_t chunk_ns; /* when the last chunk began; for the guard */
    uint64_t os_tid;
    uint64_t host_value;
    uint32_t thread_flags; /* KPT_THREAD_* */
    char name[64];
} kpti_stream;

/* Whether the chunk being written is the end of its list and contains the cursor, and the chunk that the sink took is
 * the first. The caller holds the tracing lock; the owner may append meanwhile. */
static inline int kpti_stream_is_valid_locked(const kpti_stream *s)
{
    const kpti_chunk *const last = s->last;
    const kpti_event *const cursor = atomic_load_explicit(&s->cursor, memory_order_relaxed);
    return (!last || (!last->next && last->sequence < s->sequence)) &&
           (!last || s->sealed ||
            (cursor >= last->events && cursor <= last->events + last->capacity)) &&
           (!s->given || s->given == s->first) && s->open_span_count <= KPTI_OPEN_SPANS;
}

/* FINAL: nothing of the description can change, since the thread has ended. */
enum { KPTI_DESCRIBED_NOT = 0, KPTI_DESCRIBED = 1, KPTI_DESCRIBED_FINAL = 2 };

/* Whether a thread pushes the stream's chunks to the sink. BUSY_RETRY: that thread must check again for
 * sealed chunks before it ends the push. */
enum { KPTI_SINK_IDLE = 0, KPTI_SINK_BUSY = 1, KPTI_SINK_BUSY_RETRY = 2 };

/* The open calls at the start of a stream or chunk: functions, the outermost first, with their lines. */
typedef struct kpti_open_stack {
    const uint32_t *functions;
    const uint32_t *lines;
    const uint32_t *masks; /* the tracers that record the function */
    uint32_t count;
    uint32_t *memory;                 /* holds all three arrays */
    struct kpti_open_answer *answers; /* from watching hosts; by frame, the innermost first */
    uint32_t answer_count;
    uint32_t
        are_new; /* the calls began after the run did, just before the first event of the thread */
    uint32_t was_walked; /* the frames were walked: no other Python call is open */
} kpti_open_stack;

/* The answer of the host of the tracer with BIT for the open call at INDEX in memory. */
typedef struct kpti_open_answer {
    uint32_t index;
    uint32_t bit;
    uint64_t call_id;
    uint64_t answer;
} kpti_open_answer;

#endif
