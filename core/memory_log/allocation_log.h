/* allocation_log.h: the log of allocations: per thread a list of chunks of events, only ever appended to. What
 * is alive is worked out when somebody asks: a table of it while the program runs is what would cost.
 *
 * One log records at a time. A thread appends to its own chunk without a lock; the log's lock is taken
 * when a chunk is full. With a limit, the oldest chunk that nobody appends to any more is taken again where
 * the other such ones hold enough, and what was in it is counted.
 *
 * The memory is malloc's: it never goes through what is being recorded. */
#ifndef KPTI_CORE_MEMORY_LOG_ALLOCATION_LOG_H
#define KPTI_CORE_MEMORY_LOG_ALLOCATION_LOG_H

#include <stdatomic.h>

#include "core/base/platform.h"
#include "core/memory_log/allocation_event.h"
#include "core/memory_log/block_tags.h"

enum { KPTI_MEMORY_CHUNK = 2720 }; /* events: 64 kB with the head */

typedef struct kpti_memory_chunk {
    struct kpti_memory_chunk *newer; /* of all, in the order in which they were begun */
    uint64_t os_tid;
    uint32_t times; /* TIME events in it */
    int is_open;    /* its thread appends to it; under the lock */
    _Atomic uint32_t count;
    kpti_memory_event events[KPTI_MEMORY_CHUNK];
} kpti_memory_chunk;

typedef struct kpti_memory_log kpti_memory_log;

/* How its owner wants a log. */
typedef struct kpti_memory_wish {
    uint64_t most_events;  /* that are kept at least; 0: all */
    uint64_t sample_bytes; /* mean distance between samples; 0: everything */
    uint32_t depth;        /* frames of a stack; 0 = all */
} kpti_memory_wish;

enum { KPTI_MEMORY_PROBED = -1 };

/* A thread that appends. Its log and chunk are written under the lock: by itself, and by who frees the log. */
typedef struct kpti_memory_thread {
    _Atomic uint32_t busy;              /* inside of an append, or of what belongs to it */
    _Atomic(kpti_memory_log *) log;     /* that chunk belongs to */
    _Atomic(kpti_memory_chunk *) chunk; /* NULL: none yet */
    uint64_t high;                      /* the counter's upper half, as the last event has it */
    uint64_t random;                    /* state of the sampler */
    int probe; /* 1 + pool: this thread looks whether it gets into that hook; KPTI_MEMORY_PROBED: it does */
    _Atomic uint64_t *until; /* its kpti_memory_until_sample */
    uint64_t os_tid;
    struct kpti_memory_thread *next; /* of all threads, under the lock */
} kpti_memory_thread;

/* Bytes up to the thread's next sample; 0: not known yet. Written by the thread, and by who begins a log. */
extern __thread _Atomic uint64_t kpti_memory_until_sample
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* All that pymalloc_sampler.h needs for most small blocks, in one line of the cache. The same count, but of all
 * threads, as it is asked with the GIL held (sub-interpreters that have their own may lose each other's); and
 * who has the mem and the object domain. */
typedef struct kpti_memory_small {
    _Alignas(64) _Atomic uint64_t until;
    void *(*malloc[2])(void *ctx, size_t size);
    void *(*calloc[2])(void *ctx, size_t count, size_t size);
    void *(*realloc[2])(void *ctx, void *block, size_t size);
    _Atomic uintptr_t resized; /* the block that was resized last: it is counted */
} kpti_memory_small;
extern kpti_memory_small kpti_memory_of_small __attribute__((visibility("hidden")));

/* The log that records; NULL: none. Read with busy set. */
extern _Atomic(kpti_memory_log *) kpti_memory_active __attribute__((visibility("hidden")));
extern __thread kpti_memory_thread *kpti_memory_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* An empty log; NULL: no memory. */
kpti_memory_log *kpti_memory_log_make(kpti_memory_wish wish);
void kpti_memory_log_free(kpti_memory_log *log);
/* Forgets all that was recorded. It does not record. */
void kpti_memory_log_clear(kpti_memory_log *log);

static inline const kpti_memory_wish *kpti_memory_log_wish(const kpti_memory_log *log)
{
    return (const kpti_memory_wish *)log; /* its first field */
}

/* The pools of what a host reports. */
kpti_memory_pools *kpti_memory_log_pools(kpti_memory_log *log);

/* Makes LOG the one that records; 0: another one does. */
int kpti_memory_log_begin(kpti_memory_log *log);
/* Ends it, if it is that one: when this returns no thread is inside of it. */
void kpti_memory_log_end(kpti_memory_log *log);

/* The calling thread's, made if need be; NULL without memory. */
kpti_memory_thread *kpti_memory_thread_get(void);

/* Makes room for events at NOW: another chunk, a TIME event. Inside, with busy set. 0: no memory; the
 * event is counted as lost. */
int kpti_memory_log_room_slow(kpti_memory_log *log, kpti_memory_thread *thread, uint64_t now);

/* What an append needs: the thread, inside and with a log that records; or no log, where this is one of our
 * own allocations, or nobody records. */
typedef struct kpti_memory_inside {
    kpti_memory_thread *thread;
    kpti_memory_log *log;
} kpti_memory_inside;

/* To be left, where there is a log. */
static inline kpti_memory_inside kpti_memory_enter(void)
{
    kpti_memory_inside in = {kpti_memory_self, NULL};
    if (!atomic_load_explicit(&kpti_memory_active, memory_order_relaxed)) return in;
    if (!in.thread) in.thread = kpti_memory_thread_get();
    if (!in.thread || atomic_load_explicit(&in.thread->busy, memory_order_relaxed)) return in;
    atomic_store_explicit(&in.thread->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    in.log = atomic_load_explicit(&kpti_memory_active, memory_order_acquire);
    if (!in.log) atomic_store_explicit(&in.thread->busy, 0, KPTI_LEAVING);
    return in;
}

static inline void kpti_memory_leave(kpti_memory_inside in)
{
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&in.thread->busy, 0, KPTI_LEAVING);
}

/* Appends. Inside, with busy set; NOW may lie a little before the last one's. */
static inline void kpti_memory_append(kpti_memory_log *log, kpti_memory_thread *thread,
                                      uint64_t now, uint64_t address, uint64_t what, uint32_t stack)
{
    kpti_memory_chunk *chunk = atomic_load_explicit(&thread->chunk, memory_order_relaxed);
    uint32_t count;
    if (__builtin_expect(atomic_load_explicit(&thread->log, memory_order_relaxed) != log ||
                             thread->high != now >> 32 ||
                             atomic_load_explicit(&chunk->count, memory_order_relaxed) ==
                                 KPTI_MEMORY_CHUNK,
                         0)) {
        if (!kpti_memory_log_room_slow(log, thread, now)) return;
        chunk = atomic_load_explicit(&thread->chunk, memory_order_relaxed);
    }
    count = atomic_load_explicit(&chunk->count, memory_order_relaxed);
    chunk->events[count] = (kpti_memory_event){address, what, (uint32_t)now, stack};
    atomic_store_explicit(&chunk->count, count + 1, memory_order_release);
}

/* A copy of what the log holds, chunk after chunk of a thread in order, threads in any; NULL without
 * memory. A log that records goes on meanwhile. */
typedef struct kpti_memory_copy {
    uint64_t chunk_count;
    struct {
        uint64_t os_tid;
        uint64_t first; /* in events */
        uint64_t count;
    } * chunks;
    kpti_memory_event *events;
    uint64_t event_count;
    uint64_t dropped;
} kpti_memory_copy;
kpti_memory_copy *kpti_memory_log_copy(kpti_memory_log *log);
void kpti_memory_copy_free(kpti_memory_copy *copy);

/* In the child of a fork, on its only thread: nothing records any more. */
void kpti_memory_log_forked(void);
void kpti_memory_logs_lock(void);
void kpti_memory_logs_unlock(void);

#endif
