#include "execution_trace/output/live_writer.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "core/base/file_descriptor.h"
#include "core/base/helper_thread.h"
#include "execution_trace/output/trace_writer.h"

/* The first and the longest wait. The wait doubles while there is nothing new; after the longest one, the
 * thread waits until a chunk is allocated. */
enum { FIRST_WAIT_US = 500, LAST_WAIT_US = 256000 };
/* The clocks of threads differ by less than this (thread_clock.h). That a thread is busy becomes visible a
 * hundred times sooner. */
enum { MARGIN_NS = 200000 };
/* Bytes that the next chunks of a busy program take while the space behind them is prepared. */
enum { AHEAD_BYTES = 2 << 20 };
/* Other threads have priority. Close does the work that this thread does not finish. */
enum { NICENESS = 10 };

struct kpti_et_live_writer {
    kpti_et_live_writer *next; /* in the list of live writers that forks left behind */
    kpti_recorder *recorder;
    kpti_trace_file file;
    pthread_t thread;
    /* Guarded by the recorder's lock. */
    _Atomic int is_ending; /* also read without the lock */
    int is_following; /* the thread uses the fields below; otherwise the thread that calls finish may */
    int has_left;     /* the thread has left before finish, after a failure */
    int is_closed; /* the journal is closed; its mappings are to be unmapped */
    kpti_et_mapping *mappings;

    kpti_et_writer *writer; /* NULL before the first read and after a failure */
    int has_failed;
    uint64_t known; /* bytes of the journal that the writer has read */
};

static inline int is_ending(const kpti_et_live_writer *live)
{
    return atomic_load_explicit(&live->is_ending, memory_order_relaxed);
}

/* --- the journal --------------------------------------------------------------------------------- */

/* Prepares space for the next chunks of the recording threads. */
static void reserve(kpti_et_live_writer *live)
{
    kpti_recorder *r = live->recorder;
    kpti_et_extent next;
    (void)pthread_mutex_lock(&r->lock);
    next = kpti_et_journal_next(&r->journal, AHEAD_BYTES);
    (void)pthread_mutex_unlock(&r->lock);
    if (!next.size || !kpti_et_extent_make(next)) return;
    (void)pthread_mutex_lock(&r->lock);
    kpti_et_journal_made(&r->journal, next);
    (void)pthread_mutex_unlock(&r->lock);
}

/* Returns the writer after it has read new chunks, and new records in known ones. Returns NULL if it
 * failed. */
static kpti_et_writer *read_more(kpti_et_live_writer *live)
{
    kpti_recorder *r = live->recorder;
    kpti_error unread;
    kpt_status status;
    int is_all;
    do {
        const char *bytes;
        uint64_t size;
        (void)pthread_mutex_lock(&r->lock);
        bytes = kpti_et_journal_at(&r->journal, live->known, &size);
        is_all = live->known + size == r->journal.bytes;
        (void)pthread_mutex_unlock(&r->lock);
        if (live->writer)
            status = kpti_et_reader_add(&live->writer->reader, bytes, size);
        else
            status = kpti_et_writer_open(&live->writer, &live->file, bytes, size, &unread);
        live->known += size;
        kpti_assert(live->is_following ||
                    is_ending(live)); /* else the other thread uses these fields */
    } while (status == KPT_OK && !is_all);
    return status == KPT_OK ? live->writer : NULL;
}

/* --- the thread ---------------------------------------------------------------------------------- */

static void give_up(kpti_et_live_writer *live)
{
    kpti_et_writer *writer = live->writer;
    kpti_error unread;
    live->has_failed = 1;
    live->writer = NULL; /* First, so that after a fork in between nothing is closed twice */
    if (writer) (void)kpti_et_writer_close(writer, 0, &unread);
}

/* Writes the records up to now. Returns 1 if there were any. */
static int follow(kpti_et_live_writer *live)
{
    const int64_t now = kpti_et_clock_ns(CLOCK_MONOTONIC);
    const uint64_t known = live->known;
    const uint64_t nodes = live->writer ? live->writer->tree.node_count : 0;
    kpti_et_writer *writer;
    reserve(live);
    kpti_recorder_wait_quiescent(live->recorder);
    writer = read_more(live);
    if (writer && kpti_et_writer_take(writer, now - MARGIN_NS, &live->is_ending))
        return live->known != known || writer->tree.node_count != nodes;
    give_up(live);
    return 0;
}

static struct timespec after_us(int us)
{
    const int64_t ns = kpti_et_clock_ns(CLOCK_MONOTONIC) + (int64_t)us * 1000;
    return (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
}

/* Waits, with the lock held, for a chunk, for the end, or for US microseconds. */
static void wait_for_more(kpti_et_live_writer *live, int us)
{
    kpti_recorder *r = live->recorder;
    const struct timespec until = after_us(us);
    int error = 0;
    while (!is_ending(live) && !error && !r->out_of_space && r->journal.bytes == live->known) {
        if (us > LAST_WAIT_US)
            (void)pthread_cond_wait(&r->grown, &r->lock);
        else
            error = pthread_cond_timedwait(&r->grown, &r->lock, &until);
    }
}

static void *run(void *arg)
{
    kpti_et_live_writer *live = arg;
    kpti_recorder *r = live->recorder;
    int us = FIRST_WAIT_US;
    int has_failed = 0;
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICENESS);
    (void)pthread_mutex_lock(&r->lock);
    while (!has_failed) {
        int out_of_space;
        wait_for_more(live, us);
        out_of_space = r->out_of_space;
        if (is_ending(live)) break;
        live->is_following = 1;
        (void)pthread_mutex_unlock(&r->lock);
        if (out_of_space)
            give_up(live); /* the journal needs the disk space that the file would take */
        else
            us = follow(live) ? FIRST_WAIT_US : us * 2;
        has_failed = live->has_failed;
        (void)pthread_mutex_lock(&r->lock);
        if (has_failed) r->has_live_writer = 0;
        live->is_following = 0;
        (void)pthread_cond_broadcast(&r->grown);
    }
    live->has_left = !is_ending(live);
    while (is_ending(live) && !live->is_closed)
        (void)pthread_cond_wait(&r->grown, &r->lock);
    (void)pthread_mutex_unlock(&r->lock);
    if (!live->has_left) kpti_et_mappings_unmap(live->mappings);
    return NULL;
}

kpti_et_live_writer *kpti_et_live_writer_start(kpti_recorder *recorder, kpti_trace_file file)
{
    kpti_et_live_writer *live = kpti_heap_take(&file.heap, sizeof *live);
    if (!live) return NULL;
    file.is_growing = 1;
    *live = (kpti_et_live_writer){.recorder = recorder, .file = file};
    recorder->has_live_writer = 1; /* before recording begins */
    if (kpti_own_thread_start(&live->thread, run, live) == 0) return live;
    recorder->has_live_writer = 0;
    kpti_heap_give(&file.heap, live, sizeof *live);
    return NULL;
}

int kpti_et_live_writer_finish(kpti_et_live_writer *live)
{
    kpti_recorder *r = live->recorder;
    kpti_et_writer *writer;
    kpti_error unread;
    int is_done = 0;
    (void)pthread_mutex_lock(&r->lock);
    kpti_assert(!is_ending(live) && !live->is_closed);
    atomic_store_explicit(&live->is_ending, 1, memory_order_relaxed);
    while (live->is_following) /* otherwise the thread sleeps, and may continue to */
        (void)pthread_cond_wait(&r->grown, &r->lock);
    (void)pthread_mutex_unlock(&r->lock);
    writer = live->writer ? read_more(live) : NULL;
    if (writer && kpti_et_writer_take(writer, INT64_MAX, NULL)) {
        live->writer = NULL; /* as in give_up */
        is_done = kpti_et_writer_close(writer, 1, &unread) == KPT_OK;
    }
    give_up(live);
    return is_done;
}

void kpti_et_live_writer_clear(kpti_et_live_writer *live, kpti_et_mapping *mappings)
{
    kpti_recorder *r = live->recorder;
    int has_left;
    (void)pthread_mutex_lock(&r->lock);
    kpti_assert(is_ending(live) && !live->is_closed && !live->is_following);
    live->mappings = mappings;
    live->is_closed = 1;
    has_left = live->has_left;
    (void)pthread_cond_broadcast(&r->grown);
    (void)pthread_mutex_unlock(&r->lock);
    if (has_left) kpti_et_mappings_unmap(mappings);
}

void kpti_et_live_writer_join(kpti_et_live_writer *live)
{
    const kpti_heap heap = live->file.heap;
    kpti_assert(live->is_closed && !live->writer); /* after finish and clear */
    (void)pthread_join(live->thread, NULL);
    kpti_heap_give(&heap, live, sizeof *live);
}

void kpti_et_live_writer_forked(kpti_et_live_writer *live)
{
    static kpti_et_live_writer *left; /* keeps them reachable; their threads were using them */
    live->next = left;
    left = live;
    if (live->writer) (void)kpti_descriptor_close(&live->writer->out.id, live->writer->out.fd);
}
