/* stream_state.h: the fields of a stream (event_stream.h): where one thread's events of one tracer go. */
#ifndef KPTI_PYTHON_TRACER_STATE_STREAM_STATE_H
#define KPTI_PYTHON_TRACER_STATE_STREAM_STATE_H

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

    /* The slow path's, under the tracing lock unless said otherwise. */
    _Atomic int ended;              /* the run is over, or the tracer is gone */
    struct kpti_tracer *tracer;     /* NULL once the tracer is gone */
    struct kpti_thread *thread;     /* NULL once the thread is gone */
    struct kpti_stream *sibling;    /* of the same tracer */
    struct kpti_stream *owned_next; /* of the same thread */
    struct kpti_stream *left_next;  /* of the same tracer, whose thread ended later */
    uint64_t left_ticks;            /* when its thread ended */
    kpti_chunk *first;
    kpti_chunk *last;    /* the one that is written, while it is not sealed */
    kpti_chunk *later;   /* begun while a snapshot reads: joined to the others after it */
    kpti_chunk *given;   /* the first one, if the sink took it while a snapshot was reading it */
    uint64_t idle;       /* 0, or which open calls were recorded for the thread, not by it */
    uint32_t sink_state; /* KPTI_SINK_*; while it is not 0 the first chunk stays */
    uint32_t attached;   /* the host's thread_attach was called */
    uint32_t quiesced_round; /* the last of the tracer's quiesce_rounds in which it was seen out */
    uint32_t sealed;         /* last is complete: the next event begins a new chunk */
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
enum { KPTI_SINK_IDLE = 0, KPTI_SINK_BUSY = 1, KPTI_SINK_BUSY_RETRY = 2 };

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

#endif
