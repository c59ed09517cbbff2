#include "execution_trace/record/journal_recorder.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "abi/impl/kpti_execution_trace.h"
#include "core/base/assert.h"

enum { MIN_WORDS = KPTI_ET_ALIGN / KPTI_ET_WORD, MAX_WORDS = (1 << 20) / KPTI_ET_WORD };

/* Below this many streams, do not scan for streams of ended threads. */
enum { MIN_RECLAIMED = 32 };

/* Each thread caches the streams that it used last, by their recorder. */
enum { REMEMBERED = 4 };
typedef struct remembered {
    uint64_t serial;
    kpti_et_stream *stream;
} remembered;

#define THREAD_LOCAL static __thread __attribute__((tls_model("initial-exec")))
THREAD_LOCAL remembered streams_of_thread[REMEMBERED];
THREAD_LOCAL uint64_t number_of_thread;

static _Atomic uint64_t last_number; /* numbers threads and recorders */

static uint64_t new_number(void)
{
    return atomic_fetch_add_explicit(&last_number, 1, memory_order_relaxed) + 1;
}

/* --- control ------------------------------------------------------------------------------------- */

static void init_lock(kpti_recorder *r)
{
    pthread_condattr_t attr;
    (void)pthread_mutex_init(&r->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&r->grown, &attr);
    (void)pthread_condattr_destroy(&attr);
}

int kpti_recorder_make(kpti_recorder *r, const kpti_env *env, const kpt_observer_args *args,
                       const kpt_tape_ops *tape_ops)
{
    const uint64_t words = args->max_bytes / KPTI_ET_WORD;
    r->env = env;
    r->tape_ops = tape_ops;
    r->flags = args->flags;
    r->stack_depth = args->stack_depth;
    r->most_words = words == 0 || words > MAX_WORDS ? MAX_WORDS : words;
    if (r->most_words < MIN_WORDS) r->most_words = MIN_WORDS;
    r->serial = new_number();
    r->journal.fd = -1;
    if (args->data_ops.size) {
        r->data_ops = kpti_alloc(env, args->data_ops.size);
        if (!r->data_ops) return 0;
        memcpy(r->data_ops, args->data_ops.data, args->data_ops.size);
        r->data_ops_size = args->data_ops.size;
    }
    init_lock(r);
    return 1;
}

static void free_streams(kpti_recorder *r)
{
    while (r->streams) {
        kpti_et_stream *next = r->streams->next;
        kpti_et_stream_free(r->streams);
        r->streams = next;
    }
    if (r->control) kpti_et_stream_free(r->control);
    r->control = NULL;
}

void kpti_recorder_free(kpti_recorder *r)
{
    free_streams(r);
    kpti_free(r->env, r->data_ops, r->data_ops_size);
    (void)pthread_cond_destroy(&r->grown);
    (void)pthread_mutex_destroy(&r->lock);
}

int kpti_recorder_open(kpti_recorder *r, const char *journal_path)
{
    int error;
    kpti_assert(!atomic_load(&r->recording) && !r->journal.bytes);
    (void)kpti_membarrier_register();
    if (!r->control) r->control = calloc(1, sizeof *r->control);
    if (!r->control) return ENOMEM;
    error = kpti_et_journal_open(&r->journal, journal_path);
    if (error) return error;
    r->file++;
    r->stream_count = 1;
    r->ended_ops = 0;
    atomic_store_explicit(&r->dropped, 0, memory_order_relaxed);
    r->out_of_space = r->has_live_writer = 0;
    kpti_et_stream_reset(r->control, r->file, 0);
    return 0;
}

/* Writes a record without fields into stream 0. A START leaves space for one more record, so a START always
 * gets its STOP. */
static int put_control(kpti_recorder *r, uint16_t kind, int64_t ns)
{
    enum { WORDS = sizeof(kpti_et_record) / KPTI_ET_WORD };
    kpti_et_cursor c = kpti_et_cursor_at(r->control, kind == KPTI_ET_START ? WORDS : 0);
    kpti_et_record *record = (kpti_et_record *)kpti_et_put(&c, WORDS);
    if (!record) {
        if (!kpti_recorder_refill(r, r->control, (uint64_t)2 * WORDS)) return 0;
        c = kpti_et_cursor_at(r->control, 0);
        record = (kpti_et_record *)kpti_et_put(&c, WORDS);
    }
    kpti_assert(record && !r->control->open);
    *record = (kpti_et_record){.kind = kind, .ns = ns};
    kpti_et_commit(&c);
    return 1;
}

int kpti_recorder_start(kpti_recorder *r)
{
    enum { MAX_RUNS = 0xFFFF };
    kpti_assert(!atomic_load(&r->recording) && r->journal.head);
    if (!put_control(r, KPTI_ET_START, kpti_et_clock_ns(CLOCK_MONOTONIC))) return r->refused;
    r->run = r->run % MAX_RUNS + 1;
    atomic_store(&r->recording, r->run);
    return 0;
}

/* Most threads are inside for less than a microsecond. A thread that allocates a chunk or waits for a
 * processor takes longer. */
static void await_stream(const kpti_et_stream *s)
{
    enum { SHORT_WAITS = 100 };
    const struct timespec pause = {0, 50000};
    for (int i = 0; atomic_load(&s->busy); i++) {
        if (i < SHORT_WAITS)
            (void)sched_yield();
        else
            (void)nanosleep(&pause, NULL);
    }
}

void kpti_recorder_wait_quiescent(kpti_recorder *r)
{
    (void)pthread_mutex_lock(&r->lock);
    for (const kpti_et_stream *s = r->streams; s; s = s->next) {
        (void)pthread_mutex_unlock(&r->lock); /* the stream's thread may need a chunk */
        await_stream(s);
        (void)pthread_mutex_lock(&r->lock);
    }
    (void)pthread_mutex_unlock(&r->lock);
}

void kpti_recorder_stop(kpti_recorder *r)
{
    int64_t ns;
    if (!atomic_load_explicit(&r->recording, memory_order_relaxed)) return;
    atomic_store(&r->recording, 0);
    kpti_process_barrier();
    kpti_recorder_wait_quiescent(r);
    (void)pthread_mutex_lock(&r->lock);
    ns = kpti_et_clock_ns(CLOCK_MONOTONIC); /* timestamps of the threads may be ahead of it */
    for (const kpti_et_stream *s = r->streams; s; s = s->next)
        if (s->last_ns >= ns) ns = s->last_ns + 1;
    (void)pthread_mutex_unlock(&r->lock);
    (void)put_control(r, KPTI_ET_STOP, ns);
}

void kpti_recorder_detach(kpti_recorder *r)
{
    kpti_assert(!atomic_load(&r->recording)); /* else a thread could write to its chunk */
    for (kpti_et_stream *s = r->streams; s; s = s->next)
        kpti_et_stream_move(s, NULL);
    kpti_et_stream_move(r->control, NULL);
}

/* The journal belongs to the parent. The streams of the parent's threads are in whatever state these were
 * at the fork, so the child neither reads nor frees them. */
void kpti_recorder_forked(kpti_recorder *r)
{
    /* streams of the parent, kept reachable so that leak checkers don't report them */
    static kpti_et_stream *left;
    kpti_et_stream **end = &r->streams;
    atomic_store_explicit(&r->recording, 0, memory_order_relaxed);
    r->has_live_writer = 0;
    init_lock(r);
    r->serial = new_number(); /* the forking thread has one of the old streams in its cache */
    while (*end)
        end = &(*end)->next;
    *end = r->control;
    if (r->control)
        r->control->next = left;
    else
        *end = left;
    left = r->streams;
    r->streams = r->control = NULL;
    r->stream_capacity = 0;
    kpti_et_journal_forked(&r->journal);
}

/* --- threads ------------------------------------------------------------------------------------- */

static kpti_et_stream *stream_of(const kpti_recorder *r, uint64_t thread)
{
    kpti_et_stream *s = r->streams;
    while (s && s->thread != thread)
        s = s->next;
    return s;
}

/* A thread that has ended is not busy, and its stream is unchanged since its last operator. */
static int has_ended(const kpti_et_stream *s)
{
    return !atomic_load_explicit(&s->busy, memory_order_acquire) &&
           syscall(SYS_tgkill, getpid(), (pid_t)s->os_tid, 0) != 0 && errno == ESRCH;
}

/* Makes the streams of ended threads free for reuse, if there are twice as many streams as there were live
 * threads at the last scan. A program may start a thread for each request. */
static void reclaim_locked(kpti_recorder *r)
{
    uint32_t alive = 0;
    if (r->stream_capacity < r->reclaim_at) return;
    for (kpti_et_stream *s = r->streams; s; s = s->next) {
        if (s->thread && has_ended(s)) {
            if (s->file == r->file)
                r->ended_ops += atomic_load_explicit(&s->ops, memory_order_relaxed);
            s->thread = s->file = 0; /* the next owner gets its own index */
        }
        alive += s->thread != 0;
    }
    r->reclaim_at = alive * 2 > MIN_RECLAIMED ? alive * 2 : MIN_RECLAIMED;
}

static kpti_et_stream *new_stream_locked(kpti_recorder *r)
{
    kpti_et_stream *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->tape = (kpt_tape){.struct_size = sizeof s->tape, .ops = r->tape_ops};
    s->next = r->streams;
    r->streams = s;
    r->stream_capacity++;
    return s;
}

/* Finds or adds the calling thread's stream. While other threads may read the list, it changes only at its
 * head. */
static kpti_et_stream *find_slow(kpti_recorder *r)
{
    kpti_et_stream *s;
    if (!number_of_thread) number_of_thread = new_number();
    (void)pthread_mutex_lock(&r->lock);
    s = stream_of(r, number_of_thread);
    if (!s) {
        s = stream_of(r, 0);
        if (!s) {
            reclaim_locked(r);
            s = stream_of(r, 0);
        }
        if (!s) s = new_stream_locked(r);
        if (s) {
            s->owner = r;
            s->serial = r->serial;
            s->thread = number_of_thread;
            s->os_tid = (uint64_t)syscall(SYS_gettid);
        }
    }
    (void)pthread_mutex_unlock(&r->lock);
    if (s) streams_of_thread[r->serial % REMEMBERED] = (remembered){r->serial, s};
    return s;
}

/* Returns the calling thread's stream, or NULL if there is no memory. */
static inline kpti_et_stream *own_stream(kpti_recorder *r)
{
    const remembered *known = &streams_of_thread[r->serial % REMEMBERED];
    return known->serial == r->serial ? known->stream : find_slow(r);
}

/* Resets the stream for the current file. Returns 0 if there are too many threads. */
static int take_file(kpti_recorder *r, kpti_et_stream *s)
{
    uint32_t index;
    (void)pthread_mutex_lock(&r->lock);
    index = r->stream_count;
    if (index < KPTI_ET_MAX_STREAMS) {
        r->stream_count++;
        kpti_assert(s->owner == r && s->serial == r->serial && s->file != r->file);
        kpti_et_stream_reset(s, r->file, index);
    }
    (void)pthread_mutex_unlock(&r->lock);
    return index < KPTI_ET_MAX_STREAMS;
}

/* Reads only fields that the stream's own thread writes. */
uint32_t kpti_recorder_gather(const kpti_recorder *r, uint32_t run, uint64_t *gathered)
{
    const remembered *known = &streams_of_thread[r->serial % REMEMBERED];
    const kpti_et_stream *s = known->stream;
    *gathered = known->serial == r->serial && s->run == run ? s->call_gathered : 0;
    return kpti_observer_stacks.gather(r->stack_depth, gathered);
}

kpti_et_stream *kpti_recorder_enter(kpti_recorder *r, uint32_t *run)
{
    kpti_et_stream *s = own_stream(r);
    if (!s) return NULL;
    if (s->pending.words) { /* in the middle of a tape record, where the host must not call */
        kpti_recorder_drop(r);
        return NULL;
    }
    *run = kpti_recorder_enter_flag(r, s);
    if (*run && (s->file == r->file || take_file(r, s))) {
        if (__builtin_expect(s->run != *run, 0)) {
            s->run = *run;
            s->number = 0;
            s->open = 0;
            s->call = 0;
            s->call_gathered = 0;
            (void)kpti_et_now_look(&s->now); /* so that no record is earlier than the run's start */
        }
        return s;
    }
    if (*run) kpti_recorder_drop(r); /* before leave: the head is valid */
    kpti_recorder_leave(s);
    return NULL;
}

kpt_tape *kpti_recorder_tape(kpti_recorder *r)
{
    kpti_et_stream *s = own_stream(r);
    return s ? &s->tape : NULL;
}

int kpti_recorder_refill(kpti_recorder *r, kpti_et_stream *s, uint64_t words)
{
    const uint64_t needed = words + KPTI_ET_CHUNK_WORDS + KPTI_ET_MAX_RESERVE;
    const uint64_t wanted = needed > s->next_words ? needed : s->next_words;
    kpti_et_chunk *chunk;
    int error;
    (void)pthread_mutex_lock(&r->lock);
    chunk = kpti_et_journal_take(&r->journal, s->index, wanted, s->os_tid, &error);
    if (!chunk) r->refused = error;
    r->out_of_space |= !chunk || r->journal.low_address_space;
    if (chunk && s->chunk && !r->has_live_writer) kpti_et_journal_leave(&r->journal, s->chunk);
    (void)pthread_cond_signal(&r->grown);
    (void)pthread_mutex_unlock(&r->lock);
    if (!chunk) return 0;
    kpti_et_stream_move(s, chunk);
    kpti_assert(s->high - s->low >= words + KPTI_ET_MAX_RESERVE);
    s->next_words = s->next_words * 4 < r->most_words ? s->next_words * 4 : r->most_words;
    return 1;
}

void kpti_recorder_drop(kpti_recorder *r)
{
    const uint64_t dropped = atomic_fetch_add_explicit(&r->dropped, 1, memory_order_relaxed) + 1;
    __atomic_store_n(&r->journal.head->dropped, dropped, __ATOMIC_RELAXED);
}

void kpti_recorder_stats(kpti_recorder *r, kpt_observer_stats *out)
{
    (void)pthread_mutex_lock(&r->lock);
    kpti_assert(r->stream_count <= KPTI_ET_MAX_STREAMS);
    out->ops = r->ended_ops;
    for (const kpti_et_stream *s = r->streams; s; s = s->next)
        if (s->file == r->file) out->ops += atomic_load_explicit(&s->ops, memory_order_relaxed);
    out->dropped = atomic_load_explicit(&r->dropped, memory_order_relaxed);
    out->journal_bytes = r->journal.bytes;
    (void)pthread_mutex_unlock(&r->lock);
}
