/* journal_recorder.h: the recording state of an observer: its journal, the streams of its threads, and
 * whether it records. op_recorder.h and op_tape.h write records with it.
 *
 * Recording functions run on any thread. They take a lock only if the thread is new or its chunk is full. A
 * thread sets busy before it reads `recording`. The stopping thread clears `recording`, runs the barrier,
 * and waits until no stream is busy (asymmetric_barrier.h). A thread takes the timestamp of a record after
 * it sets busy. So once another thread has read busy == 0, later records have later timestamps, minus the
 * visibility delay (live_writer.h). */
#ifndef KPTI_EXECUTION_TRACE_RECORD_JOURNAL_RECORDER_H
#define KPTI_EXECUTION_TRACE_RECORD_JOURNAL_RECORDER_H

#include <pthread.h>
#include <stdatomic.h>

#include "abi/impl/kpti_impl.h"
#include "core/base/asymmetric_barrier.h"
#include "execution_trace/record/thread_journal.h"

typedef struct kpti_recorder {
    /* Fields that every operator reads. */
    uint32_t flags; /* KPT_OBSERVER_* */
    uint32_t stack_depth;
    uint64_t serial; /* of this recorder, unique in the process */
    uint64_t file; /* number of files opened; identifies the file that a stream's data belongs to */
    _Atomic uint32_t recording; /* the run, or 0 */
    uint32_t run;               /* the last run */

    const kpti_env *env;
    char *data_ops; /* or NULL */
    size_t data_ops_size;
    uint64_t most_words;      /* maximum of an ordinary chunk */
    _Atomic uint64_t dropped; /* operators of this file */
    pthread_mutex_t lock;
    /* Signalled when the journal has grown, could not grow, or its live writer pauses. Waits use the
     * monotonic clock. */
    pthread_cond_t grown;
    /* Guarded by the lock. */
    int refused; /* errno of the last chunk that could not be allocated */
    /* there was no space for a chunk, or too little address space; the live writer then gives up */
    int out_of_space;
    int has_live_writer; /* a live writer reads the journal while it is recorded */
    kpti_et_journal journal;
    kpti_et_stream *streams;
    kpti_et_stream *control;      /* stream 0 */
    uint32_t stream_count;        /* of this file */
    uint32_t stream_capacity;     /* number of streams of all files, with the free ones */
    uint32_t reclaim_at;          /* number of streams at which reclaim scans for ended threads */
    uint64_t ended_ops;           /* operators of this file on streams that were reused since */
    const kpt_tape_ops *tape_ops; /* of every stream's tape */
} kpti_recorder;

/* TAPE_OPS go into the tape of every stream (op_tape.h). Returns 0 if there is no memory. */
int kpti_recorder_make(kpti_recorder *r, const kpti_env *env, const kpt_observer_args *args,
                       const kpt_tape_ops *tape_ops);
void kpti_recorder_free(kpti_recorder *r);

/* Both return 0 or an errno. */
int kpti_recorder_open(kpti_recorder *r, const char *journal_path);
int kpti_recorder_start(kpti_recorder *r);
/* When this returns, no stream is busy. */
void kpti_recorder_stop(kpti_recorder *r);
/* Waits until each stream that is busy now has been seen not busy. */
void kpti_recorder_wait_quiescent(kpti_recorder *r);
/* Removes the chunks from the streams. The journal stays valid for its readers. */
void kpti_recorder_detach(kpti_recorder *r);
/* Called in the child of a fork, on its only thread. Takes no lock. */
void kpti_recorder_forked(kpti_recorder *r);

/* The tape of the calling thread, as in the ABI; NULL if there is no memory. */
kpt_tape *kpti_recorder_tape(kpti_recorder *r);
void kpti_recorder_stats(kpti_recorder *r, kpt_observer_stats *out);

/* Returns the calling thread's stream, busy, or NULL if nothing is recorded or there is no memory. *RUN
 * receives the run that is recorded. */
kpti_et_stream *kpti_recorder_enter(kpti_recorder *r, uint32_t *run);
/* Returns the calling thread's Python stack in RUN, which is mostly that of the enclosing operator.
 * *GATHERED receives a token that identifies it. The stream must not be busy: this may run Python code, and
 * another thread may then stop recording. */
uint32_t kpti_recorder_gather(const kpti_recorder *r, uint32_t run, uint64_t *gathered);
/* Returns the run that is recorded, or 0. Call leave in both cases. */
static inline uint32_t kpti_recorder_enter_flag(const kpti_recorder *r, kpti_et_stream *s)
{
    kpti_flag_store(&s->busy, 1);
    return atomic_load_explicit(&r->recording, memory_order_acquire);
}
static inline void kpti_recorder_leave(kpti_et_stream *s)
{
    atomic_store_explicit(&s->busy, 0, memory_order_release);
}
/* Gets another chunk for S, of at least WORDS. Returns 0 if there is none. */
int kpti_recorder_refill(kpti_recorder *r, kpti_et_stream *s, uint64_t words);
void kpti_recorder_drop(kpti_recorder *r);

#endif
