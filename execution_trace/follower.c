#include "follower.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "own_thread.h"
#include "trace_writer.h"

/* It looks again after the first one; later and later where there is nothing new, and after the last one only
 * when a chunk was taken. */
enum { FIRST_WAIT_MS = 1, LAST_WAIT_MS = 192 };
/* Threads' clocks are less than that behind each other (now.h), and whether they are inside is seen sooner. */
enum { MARGIN_NS = 250000 };
/* What else runs comes first: what the thread does not get done, the close does. */
enum { NICENESS = 10 };

struct kpti_et_follower {
    kpti_et_follower *next; /* of those that forks left behind */
    kpti_recorder *recorder;
    kpti_trace_file file;
    pthread_t thread;
    int is_ending;          /* atomic; set under the recorder's lock */
    int is_following;       /* by the lock: the thread uses what follows, else who ends it may */
    kpti_et_writer *writer; /* NULL: none yet, or it failed */
    int has_failed;
    uint64_t known; /* bytes of the journal that the writer has */
};

/* --- the journal --------------------------------------------------------------------------------- */

/* Those that record find room for their next chunks. */
static void make_room(kpti_et_follower *f)
{
    kpti_recorder *r = f->recorder;
    kpti_et_stretch next;
    (void)pthread_mutex_lock(&r->lock);
    next = kpti_et_journal_next(&r->journal);
    (void)pthread_mutex_unlock(&r->lock);
    if (!next.size || !kpti_et_stretch_make(next)) return;
    (void)pthread_mutex_lock(&r->lock);
    kpti_et_journal_made(&r->journal, next);
    (void)pthread_mutex_unlock(&r->lock);
}

/* The writer, who has the chunks that were taken since, and what is new in the others. NULL: it failed. */
static kpti_et_writer *read_more(kpti_et_follower *f)
{
    kpti_recorder *r = f->recorder;
    kpti_error unread;
    kpt_status status;
    int is_all;
    do {
        const char *bytes;
        uint64_t size;
        (void)pthread_mutex_lock(&r->lock);
        bytes = kpti_et_journal_at(&r->journal, f->known, &size);
        is_all = f->known + size == r->journal.bytes;
        (void)pthread_mutex_unlock(&r->lock);
        if (f->writer)
            status = kpti_et_reader_add(&f->writer->reader, bytes, size);
        else
            status = kpti_et_writer_open(&f->writer, &f->file, bytes, size, &unread);
        f->known += size;
    } while (status == KPT_OK && !is_all);
    return status == KPT_OK ? f->writer : NULL;
}

/* --- the thread ---------------------------------------------------------------------------------- */

static void give_up(kpti_et_follower *f)
{
    kpti_et_writer *writer = f->writer;
    kpti_error unread;
    f->has_failed = 1;
    f->writer = NULL; /* first: a fork in between closes nothing twice */
    if (writer) (void)kpti_et_writer_close(writer, 0, &unread);
}

/* Writes what was recorded up to now; whether there was anything. */
static int follow(kpti_et_follower *f)
{
    const int64_t now = kpti_et_clock_ns(CLOCK_MONOTONIC);
    const uint64_t known = f->known;
    const uint64_t nodes = f->writer ? f->writer->tree.node_count : 0;
    kpti_et_writer *writer;
    make_room(f);
    kpti_recorder_await(f->recorder);
    writer = read_more(f);
    if (writer && kpti_et_writer_take(writer, now - MARGIN_NS, &f->is_ending))
        return f->known != known || writer->tree.node_count != nodes;
    give_up(f);
    return 0;
}

static struct timespec after_ms(int ms)
{
    const int64_t ns = kpti_et_clock_ns(CLOCK_MONOTONIC) + (int64_t)ms * 1000000;
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

/* Waits, with the lock, for a chunk, for the end, or for so many ms. */
static void wait_for_more(kpti_et_follower *f, int ms)
{
    kpti_recorder *r = f->recorder;
    const struct timespec until = after_ms(ms);
    int error = 0;
    while (!__atomic_load_n(&f->is_ending, __ATOMIC_RELAXED) && !error && !r->is_short &&
           r->journal.bytes == f->known) {
        if (ms > LAST_WAIT_MS)
            (void)pthread_cond_wait(&r->grown, &r->lock);
        else
            error = pthread_cond_timedwait(&r->grown, &r->lock, &until);
    }
}

static void *run(void *arg)
{
    kpti_et_follower *f = arg;
    kpti_recorder *r = f->recorder;
    int ms = FIRST_WAIT_MS;
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICENESS);
    (void)pthread_mutex_lock(&r->lock);
    for (;;) {
        int is_short;
        if (f->has_failed) {
            r->is_followed = 0;
            break;
        }
        wait_for_more(f, ms);
        is_short = r->is_short;
        if (__atomic_load_n(&f->is_ending, __ATOMIC_RELAXED)) break;
        f->is_following = 1;
        (void)pthread_mutex_unlock(&r->lock);
        if (is_short)
            give_up(f); /* what the file takes is the journal's */
        else
            ms = follow(f) ? FIRST_WAIT_MS : ms * 2;
        (void)pthread_mutex_lock(&r->lock);
        f->is_following = 0;
        (void)pthread_cond_broadcast(&r->grown);
    }
    (void)pthread_mutex_unlock(&r->lock);
    return NULL;
}

kpti_et_follower *kpti_et_follower_start(kpti_recorder *recorder, kpti_trace_file file)
{
    kpti_et_follower *f = kpti_heap_take(&file.heap, sizeof *f);
    if (!f) return NULL;
    file.is_growing = 1;
    *f = (kpti_et_follower){.recorder = recorder, .file = file};
    if (kpti_own_thread_start(&f->thread, run, f) == 0) return f;
    kpti_heap_give(&file.heap, f, sizeof *f);
    return NULL;
}

int kpti_et_follower_finish(kpti_et_follower *f)
{
    kpti_recorder *r = f->recorder;
    const kpti_heap heap = f->file.heap;
    kpti_et_writer *writer;
    kpti_error unread;
    int is_done = 0;
    (void)pthread_mutex_lock(&r->lock);
    __atomic_store_n(&f->is_ending, 1, __ATOMIC_RELAXED);
    (void)pthread_cond_broadcast(&r->grown);
    while (f->is_following) /* else the thread has nothing to do but to end, meanwhile */
        (void)pthread_cond_wait(&r->grown, &r->lock);
    (void)pthread_mutex_unlock(&r->lock);
    writer = f->writer ? read_more(f) : NULL;
    if (writer && kpti_et_writer_take(writer, INT64_MAX, NULL)) {
        is_done = kpti_et_writer_close(writer, 1, &unread) == KPT_OK;
        f->writer = NULL;
    }
    (void)pthread_join(f->thread, NULL);
    give_up(f);
    kpti_heap_give(&heap, f, sizeof *f);
    return is_done;
}

void kpti_et_follower_forked(kpti_et_follower *f)
{
    static kpti_et_follower
        *left; /* so that it is known where they are: their threads were in them */
    f->next = left;
    left = f;
    if (f->writer) (void)close(f->writer->out.fd);
}
