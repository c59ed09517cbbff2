/* journal_recorder.h: what an observer records with: its journal, its threads' streams, and whether it records.
 *
 * begin_op and end_op run on any thread, without a lock but where a thread is new or its chunk is full. A
 * thread says that it is inside before it looks whether anything is recorded; who ends recording first says
 * so, then waits until nobody is inside: one of the two sees the other (asymmetric_barrier.h). A thread takes the time of a
 * record when it has said that it is inside: who sees it outside knows that what it records later is newer, but for
 * what passes until it is seen (live_writer.h). */
#ifndef KPTI_EXECUTION_TRACE_RECORD_JOURNAL_RECORDER_H
#define KPTI_EXECUTION_TRACE_RECORD_JOURNAL_RECORDER_H

#include <pthread.h>

#include "abi/impl/kpti_impl.h"
#include "core/base/asymmetric_barrier.h"
#include "execution_trace/record/thread_journal.h"

typedef struct kpti_recorder {
    /* What each operator looks at. */
    uint32_t flags; /* KPT_OBSERVER_* */
    uint32_t stack_depth;
    uint64_t serial;    /* of this recorder, among all that there ever were */
    uint64_t file;      /* how many were opened: which one a stream's things belong to */
    uint32_t recording; /* atomic: the run, or 0 */
    uint32_t run;       /* the last one */

    const kpti_env *env;
    char *data_ops; /* or NULL */
    size_t data_ops_size;
    uint64_t most_words; /* of an ordinary chunk */
    uint64_t dropped;    /* atomic; of this file */
    pthread_mutex_t lock;
    /* The journal has grown, or could not, or its follower rests; waited for on the monotonic clock. */
    pthread_cond_t grown;
    /* Under the lock. */
    int refused;     /* the errno of the last chunk that was not to be had */
    int is_short;    /* there was no room for a chunk, or few addresses: who follows gives up */
    int is_followed; /* somebody reads the journal while it is recorded */
    kpti_et_journal journal;
    kpti_et_stream *streams;
    kpti_et_stream *control; /* stream 0 */
    uint32_t stream_count;   /* of this file */
    uint32_t stream_room;    /* streams, of whichever file, with those that are nobody's */
    uint32_t reclaim_at;     /* how many there are when those of ended threads are looked for */
    uint64_t ended_ops;      /* of this file, on streams that others have now */
} kpti_recorder;

/* 0: no memory. */
int kpti_recorder_make(kpti_recorder *r, const kpti_env *env, const kpt_observer_args *args);
void kpti_recorder_free(kpti_recorder *r);

/* Both 0 or an errno. */
int kpti_recorder_open(kpti_recorder *r, const char *journal_path);
int kpti_recorder_start(kpti_recorder *r);
/* When this returns, nobody is inside. */
void kpti_recorder_stop(kpti_recorder *r);
/* Waits until nobody is seen inside who was when it was called. */
void kpti_recorder_await(kpti_recorder *r);
/* Takes the chunks away from the streams; the journal stays, for who reads it. */
void kpti_recorder_detach(kpti_recorder *r);
/* In the child of a fork, on its only thread; takes no lock. */
void kpti_recorder_forked(kpti_recorder *r);

/* As begin_op, end_op and tape of the ABI. */
kpt_status kpti_recorder_begin(kpti_recorder *r, const kpt_op *op, uint64_t *op_id);
kpt_status kpti_recorder_end(kpti_recorder *r, uint64_t op_id, const kpt_op *op, kpt_str error);
kpt_tape *kpti_recorder_tape(kpti_recorder *r);
void kpti_recorder_stats(kpti_recorder *r, kpt_observer_stats *out);

/* The calling thread's stream, busy; NULL: nothing is recorded, or there is no memory. RUN receives the run
 * that is. */
kpti_et_stream *kpti_recorder_enter(kpti_recorder *r, uint32_t *run);
/* The calling thread's Python stack in RUN, which is mostly that of the operator around; GATHERED receives what it
 * is known by. Nobody is inside: this may run Python, which may let others in who end recording. */
uint32_t kpti_recorder_gather(const kpti_recorder *r, uint32_t run, uint64_t *gathered);
/* The run that is recorded, or 0; either way leave comes next. */
static inline uint32_t kpti_recorder_say_inside(const kpti_recorder *r, kpti_et_stream *s)
{
    kpti_barrier_say(&s->busy, 1);
    return __atomic_load_n(&r->recording, __ATOMIC_ACQUIRE);
}
static inline void kpti_recorder_leave(kpti_et_stream *s)
{
    __atomic_store_n(&s->busy, 0, __ATOMIC_RELEASE);
}
/* Makes sure that the journal has STACK, and what is below it; those that it has are the stream's sets. 0: it
 * can't. */
int kpti_recorder_tell_new(kpti_recorder *r, kpti_et_stream *s, uint32_t stack, int64_t ns);
static inline int kpti_recorder_tell(kpti_recorder *r, kpti_et_stream *s, uint32_t stack,
                                     int64_t ns)
{
    return !stack || stack == s->last_stack || kpti_recorder_tell_new(r, s, stack, ns);
}
/* Another chunk for S, of WORDS at least; 0: there is none. */
int kpti_recorder_refill(kpti_recorder *r, kpti_et_stream *s, uint64_t words);
void kpti_recorder_drop(kpti_recorder *r);

#endif
