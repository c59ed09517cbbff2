#include "core/memory_log/log_chunks.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_SPARE = 32 }; /* chunks */

void kpti_memory_copy_free(kpti_memory_copy *copy)
{
    if (!copy) return;
    free(copy->events);
    free(copy->chunks);
    free(copy);
}

/* Allocates a copy for the chunks that the log has now, and some more. */
static kpti_memory_copy *make_copy(kpti_memory_log *log, uint64_t *capacity)
{
    kpti_memory_copy *copy = calloc(1, sizeof *copy);
    kpti_memory_logs_lock();
    *capacity = log->chunk_count + log->chunk_count / 4 + 8;
    kpti_memory_logs_unlock();
    if (!copy) return NULL;
    copy->chunks = calloc(*capacity, sizeof *copy->chunks);
    copy->events = malloc(*capacity * KPTI_MEMORY_CHUNK * sizeof *copy->events);
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
        uint64_t capacity;
        kpti_memory_copy *copy = make_copy(log, &capacity);
        int whole;
        if (!copy) return NULL;
        kpti_memory_logs_lock();
        whole = log->chunk_count <= capacity;
        for (const kpti_memory_chunk *c = whole ? log->oldest : NULL; c; c = c->newer)
            copy_chunk(copy, c);
        copy->dropped = log->dropped;
        kpti_memory_logs_unlock();
        if (whole) return copy;
        kpti_memory_copy_free(copy); /* the log has grown beyond the copy: retry */
    }
}

void kpti_memory_log_set_stream(kpti_memory_log *log, kpti_log_stream *stream,
                                void (*press)(kpti_log_stream *stream))
{
    log->press = press;
    log->stream = stream;
}

kpti_log_stream *kpti_memory_log_stream(const kpti_memory_log *log)
{
    return log->stream;
}

uint64_t kpti_memory_log_waiting(const kpti_memory_log *log)
{
    return atomic_load_explicit(&log->closed_chunks, memory_order_relaxed);
}

/* An event that is stored after its thread's count was read here has been noted, if not timed, after *UNTIL: what it may
 * depend on, in another thread, is in this list. */
uint64_t kpti_memory_log_unread(kpti_memory_log *log, kpti_event_run **runs, uint64_t *until)
{
    uint64_t count = 0;
    kpti_memory_logs_lock();
    *until = kpti_ticks();
    *runs = malloc((log->chunk_count + 1) * sizeof **runs);
    for (const kpti_memory_chunk *c = *runs ? log->oldest : NULL; c; c = c->newer)
        (*runs)[count++] =
            (kpti_event_run){c->events,    atomic_load_explicit(&c->count, memory_order_acquire),
                             c->read,      c->os_tid,
                             c->read_high, 0};
    kpti_memory_logs_unlock();
    return count;
}

/* Returns the chunk that the list continues with after CHUNK was freed or kept as a spare one. */
static kpti_memory_chunk *remove_read_locked(kpti_memory_log *log, kpti_memory_chunk *chunk)
{
    kpti_memory_chunk *newer = chunk->newer;
    log->chunk_count--;
    log->closed_events -= kpti_memory_events_in(chunk);
    atomic_fetch_sub_explicit(&log->closed_chunks, 1, memory_order_relaxed);
    if (log->spare_count == MAX_SPARE) {
        free(chunk);
        return newer;
    }
    chunk->newer = log->spare;
    log->spare = chunk;
    log->spare_count++;
    return newer;
}

/* The list begins with the chunks of RUNS: others were added at its end. */
uint64_t kpti_memory_log_read(kpti_memory_log *log, const kpti_event_run *runs, uint64_t count)
{
    kpti_memory_chunk **link = &log->oldest;
    kpti_memory_chunk *before = NULL;
    uint64_t dropped;
    kpti_memory_logs_lock();
    for (uint64_t i = 0; i < count; i++) {
        kpti_memory_chunk *chunk = *link;
        chunk->read = (uint32_t)runs[i].at;
        chunk->read_high = runs[i].high;
        if (chunk->is_open ||
            chunk->read < atomic_load_explicit(&chunk->count, memory_order_relaxed)) {
            before = chunk;
            link = &chunk->newer;
        } else {
            *link = remove_read_locked(log, chunk);
            if (log->newest == chunk) log->newest = before;
        }
    }
    kpti_assert(kpti_memory_log_is_valid(log));
    dropped = log->dropped;
    kpti_memory_logs_unlock();
    return dropped;
}
