#include "memory_log.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "platform.h"

struct kpti_memory_log {
    uint64_t most_chunks; /* 0: no limit */
    uint64_t chunk_count;
    kpti_memory_chunk *oldest; /* of all, by newer */
    kpti_memory_chunk *newest;
    uint64_t dropped; /* events, in all */
};

_Atomic(kpti_memory_log *) kpti_memory_active;
__thread kpti_memory_thread *kpti_memory_self __attribute__((tls_model("initial-exec")));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards logs and the list of threads */
static kpti_memory_thread *threads;
static pthread_key_t at_thread_end;

void kpti_memory_logs_lock(void)
{
    pthread_mutex_lock(&lock);
}

void kpti_memory_logs_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

kpti_memory_log *kpti_memory_log_make(uint64_t most_events)
{
    kpti_memory_log *log = calloc(1, sizeof *log);
    /* One chunk more: the oldest one goes as a whole. */
    if (log && most_events) log->most_chunks = most_events / KPTI_MEMORY_CHUNK + 2;
    return log;
}

static void forget_log_locked(const kpti_memory_log *log)
{
    for (kpti_memory_thread *t = threads; t; t = t->next) {
        if (t->log != log) continue;
        t->log = NULL;
        t->chunk = NULL;
    }
}

void kpti_memory_log_free(kpti_memory_log *log)
{
    if (!log) return;
    kpti_memory_logs_lock();
    forget_log_locked(log);
    kpti_memory_logs_unlock();
    while (log->oldest) {
        kpti_memory_chunk *chunk = log->oldest;
        log->oldest = chunk->newer;
        free(chunk);
    }
    free(log);
}

int kpti_memory_log_begin(kpti_memory_log *log)
{
    kpti_memory_log *none = NULL;
    return atomic_compare_exchange_strong(&kpti_memory_active, &none, log) || none == log;
}

/* Whether a thread other than this one is inside of an append. */
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
    kpti_barrier_all();
    while (any_busy())
        (void)sched_yield();
}

/* A thread that is gone leaves its chunks to the log. */
static void thread_ended(void *self)
{
    kpti_memory_thread *thread = self;
    kpti_memory_thread **link = &threads;
    kpti_memory_self = NULL;
    kpti_memory_logs_lock();
    while (*link != thread)
        link = &(*link)->next;
    *link = thread->next;
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
    thread->os_tid = kpti_os_tid();
    thread->random = thread->os_tid * UINT64_C(0x9E3779B97F4A7C15) ^ kpti_ticks();
    kpti_memory_logs_lock();
    thread->next = threads;
    threads = thread;
    kpti_memory_logs_unlock();
    kpti_memory_self = thread;
    return thread;
}

static int is_current_locked(const kpti_memory_chunk *chunk)
{
    for (const kpti_memory_thread *t = threads; t; t = t->next)
        if (t->chunk == chunk) return 1;
    return 0;
}

/* Takes the oldest chunk that nobody appends to out of the log; NULL: there is none. */
static kpti_memory_chunk *take_oldest_locked(kpti_memory_log *log)
{
    kpti_memory_chunk **link = &log->oldest;
    kpti_memory_chunk *before = NULL;
    kpti_memory_chunk *chunk;
    while (*link && is_current_locked(*link)) {
        before = *link;
        link = &before->newer;
    }
    chunk = *link;
    if (!chunk) return NULL;
    *link = chunk->newer;
    if (log->newest == chunk) log->newest = before;
    log->chunk_count--;
    /* The TIME events in it are none of the program's: the first one at least. */
    log->dropped += atomic_load_explicit(&chunk->count, memory_order_relaxed) - 1;
    return chunk;
}

static kpti_memory_chunk *new_chunk_locked(kpti_memory_log *log)
{
    kpti_memory_chunk *chunk = NULL;
    if (log->most_chunks && log->chunk_count >= log->most_chunks) chunk = take_oldest_locked(log);
    if (!chunk) chunk = malloc(sizeof *chunk);
    if (!chunk) return NULL;
    chunk->newer = NULL;
    atomic_init(&chunk->count, 0);
    if (log->newest)
        log->newest->newer = chunk;
    else
        log->oldest = chunk;
    log->newest = chunk;
    log->chunk_count++;
    return chunk;
}

static int add_chunk(kpti_memory_log *log, kpti_memory_thread *thread)
{
    kpti_memory_chunk *chunk;
    kpti_memory_logs_lock();
    thread->chunk = NULL; /* it is full: it may go */
    chunk = new_chunk_locked(log);
    if (chunk) {
        chunk->os_tid = thread->os_tid;
        thread->chunk = chunk;
        thread->log = log;
    } else {
        thread->log = NULL;
        log->dropped++;
    }
    kpti_memory_logs_unlock();
    return chunk != NULL;
}

int kpti_memory_log_room_slow(kpti_memory_log *log, kpti_memory_thread *thread, uint64_t now)
{
    kpti_memory_chunk *chunk = thread->chunk;
    uint32_t count;
    if (thread->log != log ||
        atomic_load_explicit(&chunk->count, memory_order_relaxed) >= KPTI_MEMORY_CHUNK - 1) {
        if (!add_chunk(log, thread)) return 0;
        chunk = thread->chunk;
    }
    count = atomic_load_explicit(&chunk->count, memory_order_relaxed);
    chunk->events[count] = (kpti_memory_event){now, KPTI_MEMORY_TIME, (uint32_t)now, 0};
    atomic_store_explicit(&chunk->count, count + 1, memory_order_release);
    thread->high = now >> 32;
    return 1;
}

kpti_memory_counts kpti_memory_log_counts(kpti_memory_log *log)
{
    kpti_memory_counts counts = {0, 0, 0};
    kpti_memory_logs_lock();
    for (const kpti_memory_chunk *c = log->oldest; c; c = c->newer)
        counts.events += atomic_load_explicit(&c->count, memory_order_acquire);
    counts.dropped = log->dropped;
    counts.bytes = log->chunk_count * sizeof(kpti_memory_chunk);
    kpti_memory_logs_unlock();
    return counts;
}

void kpti_memory_copy_free(kpti_memory_copy *copy)
{
    if (!copy) return;
    free(copy->events);
    free(copy->chunks);
    free(copy);
}

/* Memory for what is there now, and a little more. */
static kpti_memory_copy *make_copy(kpti_memory_log *log, uint64_t *room)
{
    kpti_memory_copy *copy = calloc(1, sizeof *copy);
    kpti_memory_logs_lock();
    *room = log->chunk_count + 8;
    kpti_memory_logs_unlock();
    if (!copy) return NULL;
    copy->chunks = calloc(*room, sizeof *copy->chunks);
    copy->events = malloc(*room * KPTI_MEMORY_CHUNK * sizeof *copy->events);
    if (copy->chunks && copy->events) return copy;
    kpti_memory_copy_free(copy);
    return NULL;
}

static void copy_chunk(kpti_memory_copy *copy, const kpti_memory_chunk *chunk)
{
    const uint64_t count = atomic_load_explicit(&chunk->count, memory_order_acquire);
    copy->chunks[copy->chunk_count].os_tid = chunk->os_tid;
    copy->chunks[copy->chunk_count].first = copy->event_count;
    copy->chunks[copy->chunk_count++].count = count;
    memcpy(copy->events + copy->event_count, chunk->events, count * sizeof *copy->events);
    copy->event_count += count;
}

kpti_memory_copy *kpti_memory_log_copy(kpti_memory_log *log)
{
    for (;;) {
        uint64_t room;
        kpti_memory_copy *copy = make_copy(log, &room);
        int whole;
        if (!copy) return NULL;
        kpti_memory_logs_lock();
        whole = log->chunk_count <= room;
        for (const kpti_memory_chunk *c = whole ? log->oldest : NULL; c; c = c->newer)
            copy_chunk(copy, c);
        copy->dropped = log->dropped;
        kpti_memory_logs_unlock();
        if (whole) return copy;
        kpti_memory_copy_free(copy); /* it has grown faster */
    }
}

/* The other threads are gone, and what they were in the middle of. */
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
