/* allocation_log.h: the log of allocations. Each thread has a list of chunks of events, to which it
 * only appends. The live blocks are computed on request, because maintaining a table of them while
 * the program runs would be the expensive part.
 *
 * One log records at a time. A thread appends to its own chunk without a lock, and acquires the
 * log's lock when the chunk is full. If the log has a limit, it reuses the oldest closed chunk, to
 * which no thread appends any more, once the other closed chunks hold enough events. The log counts
 * the events that this drops.
 *
 * The log's memory is from malloc, so it never passes through the allocators that are being
 * recorded. */
#ifndef KPTI_CORE_MEMORY_LOG_ALLOCATION_LOG_H
#define KPTI_CORE_MEMORY_LOG_ALLOCATION_LOG_H

#include <stdatomic.h>

#include "core/base/assert.h"
#include "core/base/platform.h"
#include "core/memory_log/allocation_event.h"
#include "core/memory_log/block_tags.h"

enum { KPTI_MEMORY_CHUNK = 2720 }; /* events: 64 kB with the header */

typedef struct kpti_memory_chunk {
    struct kpti_memory_chunk *newer; /* links all chunks, in the order in which they were begun */
    uint64_t os_tid;
    uint32_t times; /* number of TIME events in the chunk */
    int is_open;    /* its thread appends to it; guarded by the lock */
    uint32_t read;  /* events that a stream has delivered, and the last TIME before them */
    uint64_t read_high;
    _Atomic uint32_t count;
    kpti_memory_event events[KPTI_MEMORY_CHUNK];
} kpti_memory_chunk;

typedef struct kpti_memory_log kpti_memory_log;
typedef struct kpti_log_stream kpti_log_stream; /* log_stream.h */

/* The options of a log, which its owner chooses. */
typedef struct kpti_memory_wish {
    uint64_t most_events;  /* the minimum number of events to keep; 0 = all */
    uint64_t sample_bytes; /* mean distance between samples; 0 = record everything */
    uint32_t depth;        /* frames per stack; 0 = all */
} kpti_memory_wish;

enum { KPTI_MEMORY_PROBED = -1 };

/* A thread that appends. log and chunk are written under the lock, by the thread itself and by the
 * thread that frees the log. */
typedef struct kpti_memory_thread {
    _Atomic uint32_t busy;              /* inside an append, or inside code that belongs to one */
    _Atomic(kpti_memory_log *) log;     /* the log that chunk belongs to */
    _Atomic(kpti_memory_chunk *) chunk; /* NULL if there is none yet */
    uint64_t high;                      /* the upper half of the counter in the last event */
    uint64_t random;                    /* the sampler's state */
    /* 1 + pool while the thread probes whether its calls reach that pool's hook; KPTI_MEMORY_PROBED
     * once they have. */
    int probe;
    _Atomic uint64_t *until; /* the thread's kpti_memory_until_sample */
    uint64_t os_tid;
    struct kpti_memory_thread *next; /* links all threads; guarded by the lock */
} kpti_memory_thread;

/* Bytes up to the thread's next sample; 0 = not determined yet. Written by the thread, and by the
 * thread that begins a log. */
extern __thread _Atomic uint64_t kpti_memory_until_sample
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* Everything that pymalloc_sampler.h needs for most small blocks, in one cache line: the allocator
 * functions behind the mem and object domains, and the bytes up to the next sample. That counter is
 * shared by all threads, because it is used with the GIL held. Sub-interpreters with their own GIL
 * may lose each other's updates. */
typedef struct kpti_memory_small {
    _Alignas(64) _Atomic uint64_t until;
    void *(*malloc[2])(void *ctx, size_t size);
    void *(*calloc[2])(void *ctx, size_t count, size_t size);
    void *(*realloc[2])(void *ctx, void *block, size_t size);
    _Atomic uintptr_t resized; /* the block that was resized last; it is already counted */
} kpti_memory_small;
extern kpti_memory_small kpti_memory_of_small __attribute__((visibility("hidden")));

/* The log that records, or NULL. Read with busy set. */
extern _Atomic(kpti_memory_log *) kpti_memory_active __attribute__((visibility("hidden")));
extern __thread kpti_memory_thread *kpti_memory_self
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* A log. Its lock (kpti_memory_logs_lock) guards all fields but wish and pools; log_chunks.h reads them. */
struct kpti_memory_log {
    kpti_memory_wish wish;
    uint64_t chunk_count;
    uint64_t closed_events;    /* in chunks to which no thread appends any more */
    kpti_memory_chunk *oldest; /* of all chunks; linked by newer */
    kpti_memory_chunk *newest;
    uint64_t dropped;                       /* events dropped in total */
    void (*press)(kpti_log_stream *stream); /* after a chunk was closed */
    kpti_log_stream *stream;                /* NULL: all chunks are kept */
    _Atomic uint64_t closed_chunks;         /* written under the lock */
    kpti_memory_chunk *spare;               /* chunks that the stream has read */
    uint32_t spare_count;
    kpti_memory_pools pools;
};

/* Whether the list of chunks is consistent, as far as its ends show. The caller holds the lock. */
static inline int kpti_memory_log_is_valid(const kpti_memory_log *log)
{
    return !log->oldest == !log->newest && !log->oldest == !log->chunk_count &&
           (!log->newest || !log->newest->newer);
}

/* The number of the program's events in CHUNK, without TIME events. */
static inline uint64_t kpti_memory_events_in(const kpti_memory_chunk *chunk)
{
    return atomic_load_explicit(&chunk->count, memory_order_relaxed) - chunk->times;
}

/* Makes an empty log. Returns NULL if there is no memory. */
kpti_memory_log *kpti_memory_log_make(kpti_memory_wish wish);
void kpti_memory_log_free(kpti_memory_log *log);
/* Discards the recording. The log must not be recording. */
void kpti_memory_log_clear(kpti_memory_log *log);

static inline const kpti_memory_wish *kpti_memory_log_wish(const kpti_memory_log *log)
{
    return &log->wish;
}

/* The pools of the blocks that a host reports. */
kpti_memory_pools *kpti_memory_log_pools(kpti_memory_log *log);

/* Makes LOG the recording log. Returns 0 if another log is recording. */
int kpti_memory_log_begin(kpti_memory_log *log);
/* Ends recording if LOG is the recording log. No other thread is inside the log when this
 * returns. */
void kpti_memory_log_end(kpti_memory_log *log);

/* Returns the calling thread's state, which it creates if necessary, or NULL if there is no
 * memory. */
kpti_memory_thread *kpti_memory_thread_get(void);

/* Makes room for events at NOW: adds a chunk if necessary, and a TIME event. The caller is inside,
 * with busy set. Returns 0 if there is no memory; the event is counted as dropped. */
int kpti_memory_log_room_slow(kpti_memory_log *log, kpti_memory_thread *thread, uint64_t now);

/* The result of kpti_memory_enter: the thread, which is inside, and the log that records. log is
 * NULL if no log records, or if this is one of our own allocations. */
typedef struct kpti_memory_inside {
    kpti_memory_thread *thread;
    kpti_memory_log *log;
} kpti_memory_inside;

/* If the result has a log, the caller must call kpti_memory_leave. */
static inline kpti_memory_inside kpti_memory_enter(void)
{
    kpti_memory_inside in = {kpti_memory_self, NULL};
    if (!atomic_load_explicit(&kpti_memory_active, memory_order_relaxed)) return in;
    if (!in.thread) in.thread = kpti_memory_thread_get();
    if (!in.thread || atomic_load_explicit(&in.thread->busy, memory_order_relaxed)) return in;
    atomic_store_explicit(&in.thread->busy, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    in.log = atomic_load_explicit(&kpti_memory_active, memory_order_acquire);
    if (!in.log) atomic_store_explicit(&in.thread->busy, 0, KPTI_CALLBACK_EXIT_ORDER);
    return in;
}

static inline void kpti_memory_leave(kpti_memory_inside in)
{
    kpti_assert(in.log && atomic_load_explicit(&in.thread->busy, memory_order_relaxed) == 1);
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&in.thread->busy, 0, KPTI_CALLBACK_EXIT_ORDER);
}

/* Appends an event. The caller is inside, with busy set. NOW may be slightly before the time of the
 * last event. */
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
    kpti_assert(count < KPTI_MEMORY_CHUNK && chunk->times && chunk->os_tid == thread->os_tid);
    chunk->events[count] = (kpti_memory_event){address, what, (uint32_t)now, stack};
    atomic_store_explicit(&chunk->count, count + 1, memory_order_release);
}

/* In the child of a fork, on its only thread: ends all recording. */
void kpti_memory_log_forked(void);
void kpti_memory_logs_lock(void);
void kpti_memory_logs_unlock(void);

#endif
