#include "core/memory_log/allocation_log.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/lock_owner.h"
#include "core/base/platform.h"

_Atomic(kpti_memory_log *) kpti_memory_active;
__thread kpti_memory_thread *kpti_memory_self __attribute__((tls_model("initial-exec")));
kpti_memory_small kpti_memory_of_small;
__thread _Atomic uint64_t kpti_memory_until_sample __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards logs and the list of threads */
static kpti_lock_owner lock_owner;
static kpti_memory_thread *threads;
static pthread_key_t at_thread_end;

void kpti_memory_logs_lock(void)
{
    kpti_lock_acquire(&lock, &lock_owner);
}

void kpti_memory_logs_unlock(void)
{
    kpti_lock_release(&lock, &lock_owner);
}

kpti_memory_log *kpti_memory_log_make(kpti_memory_wish wish)
{
    kpti_memory_log *log = calloc(1, sizeof *log);
    if (log) log->wish = wish;
    return log;
}

kpti_memory_pools *kpti_memory_log_pools(kpti_memory_log *log)
{
    return &log->pools;
}

/* Closes THREAD's chunk: the thread appends to it no more. */
static void close_chunk_locked(kpti_memory_thread *thread)
{
    kpti_memory_chunk *chunk = thread->chunk;
    kpti_memory_log *log = thread->log;
    thread->chunk = NULL;
    thread->log = NULL;
    kpti_assert(kpti_lock_is_mine(&lock_owner));
    if (!chunk) return;
    kpti_assert(chunk->is_open && log);
    chunk->is_open = 0;
    log->closed_events += kpti_memory_events_in(chunk);
    atomic_fetch_add_explicit(&log->closed_chunks, 1, memory_order_relaxed);
}

static void forget_log_locked(const kpti_memory_log *log)
{
    for (kpti_memory_thread *t = threads; t; t = t->next) {
        if (t->log != log) continue;
        t->log = NULL;
        t->chunk = NULL;
    }
}

static void free_chunks(kpti_memory_chunk *chunks)
{
    while (chunks) {
        kpti_memory_chunk *chunk = chunks;
        chunks = chunk->newer;
        free(chunk);
    }
}

void kpti_memory_log_clear(kpti_memory_log *log)
{
    kpti_memory_chunk *chunks;
    kpti_memory_chunk *spare;
    kpti_assert(atomic_load_explicit(&kpti_memory_active, memory_order_relaxed) != log);
    kpti_memory_logs_lock();
    forget_log_locked(log);
    chunks = log->oldest;
    spare = log->spare;
    log->oldest = log->newest = log->spare = NULL;
    log->chunk_count = log->closed_events = log->dropped = log->spare_count = 0;
    atomic_store_explicit(&log->closed_chunks, 0, memory_order_relaxed);
    kpti_memory_logs_unlock();
    kpti_memory_pools_clear(&log->pools);
    free_chunks(chunks);
    free_chunks(spare);
}

void kpti_memory_log_free(kpti_memory_log *log)
{
    if (!log) return;
    kpti_memory_log_clear(log);
    free(log);
}

int kpti_memory_log_begin(kpti_memory_log *log)
{
    kpti_memory_log *none = NULL;
    kpti_memory_logs_lock();
    for (const kpti_memory_thread *t = threads; t; t = t->next)
        atomic_store_explicit(t->until, 0, memory_order_relaxed); /* was for another mean */
    atomic_store_explicit(&kpti_memory_of_small.until, 0, memory_order_relaxed);
    atomic_store_explicit(&kpti_memory_of_small.resized, 0, memory_order_relaxed);
    kpti_memory_logs_unlock();
    return atomic_compare_exchange_strong(&kpti_memory_active, &none, log) || none == log;
}

/* Whether a thread other than this one is inside an append. */
static int any_busy(void)
{
    int busy = 0;
    kpti_memory_logs_lock();
    for (const kpti_memory_thread *t = threads; t && !busy; t = t->next)
        busy = t != kpti_memory_self && atomic_load_explicit(&t->busy, memory_order_acquire);
    kpti_memory_logs_unlock();
    return busy;
}

void kpti_memory_log_end(kpti_memory_log *log)
{
    kpti_memory_log *expected = log;
    if (!atomic_compare_exchange_strong(&kpti_memory_active, &expected, NULL)) return;
    kpti_process_barrier();
    while (any_busy())
        (void)sched_yield();
    /* Makes the stores visible that the threads made before they left: see KPTI_CALLBACK_EXIT_ORDER. */
    kpti_process_barrier();
}

/* Removes a thread that ends. Its chunks stay in the log. */
static void thread_ended(void *self)
{
    kpti_memory_thread *thread = self;
    kpti_memory_thread **link = &threads;
    kpti_memory_self = NULL;
    kpti_memory_logs_lock();
    while (*link != thread)
        link = &(*link)->next;
    *link = thread->next;
    close_chunk_locked(thread);
    kpti_memory_logs_unlock();
    free(thread);
}

static void make_key(void)
{
    (void)pthread_key_create(&at_thread_end, thread_ended);
    (void)kpti_membarrier_register();
}

kpti_memory_thread *kpti_memory_thread_get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    kpti_memory_thread *thread = kpti_memory_self;
    if (thread) return thread;
    (void)pthread_once(&once, make_key);
    thread = calloc(1, sizeof *thread);
    if (!thread || pthread_setspecific(at_thread_end, thread) != 0) {
        free(thread);
        return NULL;
    }
    thread->until = &kpti_memory_until_sample;
    thread->os_tid = kpti_os_tid();
    thread->random = kpti_hash_spread(thread->os_tid) ^ kpti_ticks();
    kpti_memory_logs_lock();
    thread->next = threads;
    threads = thread;
    kpti_memory_logs_unlock();
    kpti_memory_self = thread;
    return thread;
}

/* Removes the oldest closed chunk from the log if the other closed chunks hold enough events.
 * Returns the chunk, or NULL. */
static kpti_memory_chunk *take_oldest_locked(kpti_memory_log *log)
{
    kpti_memory_chunk **link = &log->oldest;
    kpti_memory_chunk *before = NULL;
    kpti_memory_chunk *chunk;
    if (!log->wish.most_events) return NULL;
    while (*link && (*link)->is_open) {
        before = *link;
        link = &before->newer;
    }
    chunk = *link;
    if (!chunk || log->closed_events - kpti_memory_events_in(chunk) < log->wish.most_events)
        return NULL;
    *link = chunk->newer;
    if (log->newest == chunk) log->newest = before;
    log->chunk_count--;
    kpti_assert((kpti_memory_log_is_valid(log) && kpti_lock_is_mine(&lock_owner)) &&
                kpti_memory_events_in(chunk) <= log->closed_events);
    log->closed_events -= kpti_memory_events_in(chunk);
    atomic_fetch_sub_explicit(&log->closed_chunks, 1, memory_order_relaxed);
    log->dropped += kpti_memory_events_in(chunk);
    return chunk;
}

/* Reuses a chunk that can be dropped, or allocates one. Threads that have ended leave chunks with
 * few events, so more than one chunk may be dropped. */
static kpti_memory_chunk *new_chunk_locked(kpti_memory_log *log)
{
    kpti_memory_chunk *chunk = take_oldest_locked(log);
    kpti_memory_chunk *more;
    while (chunk && (more = take_oldest_locked(log)))
        free(more);
    if (!chunk && log->spare) {
        chunk = log->spare;
        log->spare = chunk->newer;
        log->spare_count--;
    }
    if (!chunk) chunk = malloc(sizeof *chunk);
    if (!chunk) return NULL;
    chunk->newer = NULL;
    chunk->times = chunk->read = 0;
    chunk->read_high = 0;
    chunk->is_open = 1;
    atomic_init(&chunk->count, 0);
    if (log->newest)
        log->newest->newer = chunk;
    else
        log->oldest = chunk;
    log->newest = chunk;
    log->chunk_count++;
    kpti_assert((kpti_memory_log_is_valid(log) && kpti_lock_is_mine(&lock_owner)));
    return chunk;
}

static int add_chunk(kpti_memory_log *log, kpti_memory_thread *thread)
{
    kpti_memory_chunk *chunk;
    kpti_memory_logs_lock();
    close_chunk_locked(thread);
    chunk = new_chunk_locked(log);
    if (chunk) {
        chunk->os_tid = thread->os_tid;
        thread->chunk = chunk;
        thread->log = log;
    } else {
        log->dropped++;
    }
    kpti_memory_logs_unlock();
    if (log->stream) log->press(log->stream);
    return chunk != NULL;
}

int kpti_memory_log_room_slow(kpti_memory_log *log, kpti_memory_thread *thread, uint64_t now)
{
    kpti_memory_chunk *chunk = thread->chunk;
    uint32_t count;
    kpti_assert(thread == kpti_memory_self && thread->busy);
    if (thread->log != log ||
        atomic_load_explicit(&chunk->count, memory_order_relaxed) >= KPTI_MEMORY_CHUNK - 1) {
        if (!add_chunk(log, thread)) return 0;
        chunk = thread->chunk;
    }
    count = atomic_load_explicit(&chunk->count, memory_order_relaxed);
    chunk->events[count] = (kpti_memory_event){now, KPTI_MEMORY_TIME, (uint32_t)now, 0};
    chunk->times++;
    atomic_store_explicit(&chunk->count, count + 1, memory_order_release);
    thread->high = now >> 32;
    return 1;
}

/* The other threads do not exist in the child, and the appends that they were in are lost. */
void kpti_memory_log_forked(void)
{
    kpti_memory_thread *own = NULL;
    atomic_store(&kpti_memory_active, NULL);
    while (threads) {
        kpti_memory_thread *thread = threads;
        threads = thread->next;
        if (thread == kpti_memory_self)
            own = thread;
        else
            free(thread);
    }
    threads = own;
    if (own) own->next = NULL;
}
