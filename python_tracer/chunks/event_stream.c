#include "python_tracer/chunks/event_stream.h"

#include "core/base/assert.h"
#include "core/base/platform.h"
#include "python_tracer/chunks/chunk_budget.h"
#include "python_tracer/chunks/chunk_pool.h"
#include "python_tracer/chunks/chunk_sink.h"
#include "python_tracer/chunks/open_events.h"
#include "python_tracer/chunks/remote_ends.h"
#include "python_tracer/chunks/stream_guard.h"
#include "python_tracer/chunks/stream_owner.h"
#include "python_tracer/frames/open_frames.h"
#include "python_tracer/state/thread_state.h"
#include "python_tracer/state/tracer_state.h"
#include "python_tracer/state/tracing_lock.h"

/* The first chunk is small: a thread with few calls needs little memory. A host may ask for larger ones. */
enum { FIRST_EVENTS = 512, MAX_EVENTS = 1 << 24 };

/* After a failed chunk allocation, the stream tries again after this many dropped events. */
enum { RETRY_EVERY = 1024 };

void kpti_stream_trip(kpti_stream *stream)
{
    atomic_store_explicit(&stream->limit, NULL, memory_order_relaxed);
}

/* Finds what is open at the end of the chunk that is being sealed, for a stream that may begin its next chunk without
 * the GIL. If there is no memory, that chunk begins with nothing open. */
static void find_open_locked(kpti_stream *stream)
{
    const kpti_event *const cursor = atomic_load_explicit(&stream->cursor, memory_order_relaxed);
    kpti_assert(kpti_tracing_lock_is_mine());
    (void)kpti_open_at_end_find(&stream->open_at_end, stream->last->events,
                                (uint32_t)(cursor - stream->last->events));
    stream->open_at_end_is_known = 1;
}

void kpti_stream_seal_locked(kpti_stream *stream)
{
    kpti_event *cursor = atomic_load_explicit(&stream->cursor, memory_order_relaxed);
    kpti_assert(kpti_tracing_lock_is_mine() && kpti_stream_is_valid_locked(stream));
    if (stream->last && !stream->sealed) {
        if (kpti_budget_needs_open_stack(stream->tracer) &&
            atomic_load_explicit(&stream->host_writes, memory_order_relaxed))
            find_open_locked(stream);
        stream->last->count = (uint32_t)(cursor - stream->last->events);
        stream->tracer->chunks_sealed++;
        kpti_assert(kpti_chunk_is_valid(stream->last));
    }
    stream->sealed = 1;
}

void kpti_stream_join_locked(kpti_stream *stream)
{
    kpti_chunk *chunk = stream->later;
    kpti_assert(kpti_tracing_lock_is_mine() && (!stream->tracer || !stream->tracer->readers));
    if (!chunk) return;
    stream->later = NULL;
    if (stream->first) {
        kpti_chunk *end = stream->first;
        while (end->next)
            end = end->next;
        end->next = chunk;
    } else {
        stream->first = chunk;
    }
    kpti_assert(kpti_chunks_are_linked(stream->first, stream->last));
}

/* Links CHUNK as the chunk being written. */
static void link_locked(kpti_stream *stream, kpti_chunk *chunk)
{
    if (stream->tracer->readers) { /* a snapshot reads the list: use the separate one */
        kpti_chunk **end = &stream->later;
        while (*end)
            end = &(*end)->next;
        *end = chunk;
    } else if (stream->last && stream->first) {
        stream->last->next = chunk;
    } else {
        stream->first = chunk;
    }
    kpti_assert(!chunk->next && stream->sealed);
    stream->last = chunk;
    stream->sealed = 0;
}

/* Returns the capacity in events for the stream's next chunk, without the open calls. */
static uint32_t usual_events(const kpti_stream *stream)
{
    const uint64_t bytes = stream->tracer->chunk_sink.chunk_bytes;
    const uint64_t asked = bytes / sizeof(kpti_event);
    if (!bytes) return stream->sequence == 0 ? FIRST_EVENTS : KPTI_CHUNK_EVENTS;
    if (asked < FIRST_EVENTS) return FIRST_EVENTS;
    return asked < MAX_EVENTS ? (uint32_t)asked : MAX_EVENTS;
}

/* Begins a chunk with space for OPEN, for BEFORE, if it is not NULL, and for events, WANTED at least. The caller sets
 * the limit. */
static int begin_chunk_locked(kpti_stream *stream, kpti_open_stack open,
                              const kpti_open_at_end *before, uint32_t wanted, uint64_t ticks)
{
    kpti_tracer *tracer = stream->tracer;
    uint32_t usual = usual_events(stream);
    uint32_t most_open =
        2 * open.count + 2 * open.answer_count + (before ? (uint32_t)before->count : 0);
    uint32_t needed = most_open + wanted;
    uint32_t capacity = needed <= usual / 2 ? usual : usual + needed;
    const uint64_t begun = kpti_tracer_has_clock(tracer) ? kpti_ticks() : ticks;
    kpti_chunk *chunk = NULL;
    kpti_event *at;
    if (kpti_budget_reserve_locked(stream, kpti_chunk_bytes(capacity), begun))
        chunk = kpti_chunk_pool_get_locked(tracer->env, capacity);
    if (!chunk) return 0;
    tracer->bytes_held += kpti_chunk_bytes(capacity);
    chunk->base_ticks = ticks;
    chunk->begun = begun;
    chunk->run = stream->run;
    chunk->sequence = stream->sequence++;
    chunk->dropped_before = stream->dropped;
    stream->dropped = 0;
    at = before ? kpti_put_open_after(stream, open, before, ticks, chunk->events)
                : kpti_put_open(stream, open, ticks, chunk->events);
    stream->open_at_end_is_known = 0;
    chunk->repeated = open.are_new ? 0 : (uint32_t)(at - chunk->events);
    kpti_assert(at + KPTI_SLACK <= chunk->events + capacity);
    link_locked(stream, chunk);
    stream->high = (uint32_t)(ticks >> 32);
    atomic_store_explicit(&stream->cursor, at, memory_order_relaxed);
    return 1;
}

/* Opens the limit, unless another thread has ended the stream meanwhile. The fence pairs with the one in
 * kpti_stream_close, so at least one of the two threads sees the other's store. */
static void open_limit(kpti_stream *stream)
{
    kpti_event *end = stream->last->events + stream->last->capacity - KPTI_SLACK;
    atomic_store_explicit(&stream->limit, end, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&stream->ended, memory_order_relaxed))
        atomic_store_explicit(&stream->limit, NULL, memory_order_relaxed);
}

/* Returns the stream of a thread of which only the OS id is known. Makes the stream if there is none. */
static kpti_stream *idle_stream_locked(kpti_tracer *tracer, uint64_t os_tid, const char *name)
{
    kpti_stream *stream;
    for (stream = tracer->streams; stream; stream = stream->sibling)
        if (stream->os_tid == os_tid && !(stream->thread_flags & KPT_THREAD_ENDED)) return stream;
    stream = kpti_stream_make_locked(tracer, os_tid, name);
    if (stream) tracer->orphans++;
    return stream;
}

void kpti_stream_add_idle_locked(kpti_tracer *tracer, uint64_t os_tid, const char *name,
                                 kpti_open_stack open)
{
    const kpti_run *run = &tracer->runs[tracer->run_count - 1];
    kpti_stream *stream = idle_stream_locked(tracer, os_tid, name);
    if (!stream || !atomic_load_explicit(&stream->ended, memory_order_relaxed))
        return; /* the thread already records its own calls */
    stream->run = tracer->run_count - 1;
    stream->sequence = 0;
    if (!begin_chunk_locked(stream, open, NULL, 0, run->start_ticks)) return;
    if (kpti_budget_needs_open_stack(tracer)) find_open_locked(stream);
    kpti_stream_seal_locked(stream);
    stream->idle = kpti_open_digest(stream, open);
}

/* Drops the placeholder chunk of the current run that was recorded on behalf of an idle thread, which now
 * records for itself. Returns 1 if the placeholder can't be dropped (pushed to the sink or being read) and
 * still matches OPEN; the thread's own chunks then follow it. */
static int replace_idle_locked(kpti_stream *stream, kpti_open_stack open)
{
    const uint64_t idle = stream->idle;
    kpti_chunk *last = stream->last;
    kpti_chunk **link = &stream->first;
    stream->idle = 0;
    if (!idle || stream->run != stream->tracer->run_count - 1) return 0;
    if (!open.was_walked) return 1; /* the placeholder is all that is known */
    if (!last || stream->tracer->readers || stream->sink_state || stream->given)
        return idle == kpti_open_digest(stream, open); /* 0: it ran on before the hooks were set */
    stream->last = NULL;
    for (; *link && *link != last; link = &(*link)->next)
        stream->last = *link;
    *link = NULL;
    kpti_budget_free_locked(stream->tracer, last);
    return 0;
}

/* Copies the tracer's options into the stream, where the hot path reads them. */
static void take_options(kpti_stream *stream)
{
    const kpti_tracer *tracer = stream->tracer;
    uint32_t flags = tracer->args.flags;
    stream->bit = tracer->bit;
    stream->c_bit = flags & KPT_TRACE_NO_C_CALLS ? 0 : tracer->bit;
    stream->all_bit = flags & KPT_TRACE_ALL_CALLABLES ? stream->c_bit : 0;
    stream->max_depth = tracer->args.max_depth;
    stream->task_key = tracer->task_key;
    stream->clock = kpti_tracer_has_clock(tracer) ? tracer->env->host.now_ticks : NULL;
    stream->clock_ctx = tracer->env->host.ctx;
    kpti_stream_guard_begin(stream);
    stream->depth = 0;
}

void kpti_stream_begin_locked(kpti_stream *stream, kpti_open_stack open, uint64_t now)
{
    const uint64_t ticks =
        kpti_tracer_has_clock(stream->tracer) ? kpti_tracer_ticks(stream->tracer) : now;
    kpti_assert(kpti_tracing_lock_is_mine() && stream->ended && stream->thread);
    const int follows = replace_idle_locked(stream, open);
    const int needs_open = kpti_budget_needs_open_stack(stream->tracer);
    const kpti_open_at_end *before =
        follows && needs_open && !open.was_walked ? &stream->open_at_end : NULL;
    if (!follows) stream->sequence = 0;
    take_options(stream);
    stream->run = stream->tracer->run_count - 1;
    stream->direct_handle = 0; /* its tokens were of another run */
    stream->dropped = 0;
    stream->begun = now;
    stream->open_span_count = 0;
    stream->described = KPTI_DESCRIBED_NOT;
    atomic_store_explicit(&stream->remote_end_count, 0, memory_order_relaxed);
    atomic_store_explicit(&stream->ended, 0, memory_order_relaxed);
    if (begin_chunk_locked(stream, open, before, 0, ticks)) open_limit(stream);
}

void kpti_stream_close(kpti_stream *stream)
{
    atomic_store_explicit(&stream->ended, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    kpti_stream_trip(stream);
}

/* Returns the thread's open calls and updates *TICKS. The callback is suspended meanwhile, so other
 * callbacks may have run inside it. */
static kpti_open_stack walk_outside(const kpti_stream *stream, uint64_t *ticks)
{
    kpti_thread *thread = stream->thread;
    const uint32_t ask = stream->tracer->watch_count ? stream->bit : 0;
    int entering = kpti_callback_suspend(thread);
    kpti_open_stack open = kpti_open_frames_own(thread, entering, ask);
    open.was_walked = 1;
    kpti_callback_resume(thread, entering);
    if (!stream->clock)
        *ticks = kpti_ticks();
    else if (!atomic_load_explicit(&stream->ended, memory_order_relaxed))
        *ticks = stream->clock(stream->clock_ctx); /* else the host may be gone */
    return open;
}

/* Returns what was open at the end of the chunk that was sealed, or NULL if it is not known: the stream has only calls
 * of Python, or events were dropped since, and ends may be among them. */
static const kpti_open_at_end *before_locked(const kpti_stream *stream)
{
    return stream->open_at_end_is_known && !stream->dropped ? &stream->open_at_end : NULL;
}

/* Begins a new chunk, with space for WANTED events, for a stream whose last chunk is full or sealed. Returns 1 on
 * success. */
static int refill(kpti_stream *stream, uint32_t wanted, uint64_t *now)
{
    const int needs_open = kpti_budget_needs_open_stack(stream->tracer);
    kpti_open_stack open = {0};
    uint64_t ticks;
    int begun = 0;
    if (needs_open && kpti_may_touch_python()) open = walk_outside(stream, now);
    ticks = *now;
    kpti_tracing_lock();
    if (stream->tracer && !atomic_load_explicit(&stream->ended, memory_order_relaxed)) {
        kpti_stream_seal_locked(stream);
        kpti_stream_guard_locked(stream);
        begun = begin_chunk_locked(stream, open, before_locked(stream), wanted, ticks);
    }
    kpti_tracing_unlock();
    kpti_open_frames_free(open);
    if (begun) {
        kpti_sink_push(stream, ticks);
        open_limit(stream);
    }
    return begun;
}

/* An event could not be recorded: there is no memory, unless the stream has just ended. */
static void count_dropped(kpti_stream *stream)
{
    if (atomic_load_explicit(&stream->ended, memory_order_relaxed)) return;
    stream->dropped++;
    atomic_fetch_add_explicit(&stream->dropped_total, 1, memory_order_relaxed);
}

/* Appends the ends that other threads have left, if the stream records. Returns 0 if there are none. */
static int append_remote_ends(kpti_stream *stream, uint64_t *ticks)
{
    uint32_t count;
    uint32_t *ends;
    if (!atomic_load_explicit(&stream->remote_end_count, memory_order_relaxed)) return 0;
    kpti_tracing_lock();
    ends = kpti_remote_ends_take_locked(stream, &count);
    if (!stream->sealed) open_limit(stream);
    kpti_tracing_unlock();
    for (uint32_t i = 0; i < count; i++)
        (void)kpti_stream_append(stream, ends[i], ticks);
    free(ends);
    return 1;
}

int kpti_stream_append_slow(kpti_stream *stream, uint32_t word, uint64_t *ticks)
{
    kpti_event *at = atomic_load_explicit(&stream->cursor, memory_order_relaxed);
    kpti_event *limit = atomic_load_explicit(&stream->limit, memory_order_relaxed);
    const int is_full = (uintptr_t)at >= (uintptr_t)limit;
    kpti_assert(stream->thread == kpti_thread_self && kpti_thread_self->busy);
    if (atomic_load_explicit(&stream->ended, memory_order_relaxed)) return 0;
    if (append_remote_ends(stream, ticks)) return kpti_stream_append(stream, word, ticks);
    if (is_full && (stream->dropped % RETRY_EVERY || !refill(stream, 0, ticks))) {
        count_dropped(stream);
        return 0;
    }
    if (is_full && kpti_stream_is_switched_off(stream, word)) return 0;
    if ((uint32_t)(*ticks >> 32) != stream->high) { /* the slack has space for all three words */
        stream->high = (uint32_t)(*ticks >> 32);
        kpti_stream_append_plain(stream, kpti_event_make(KPTI_EVENT_EPOCH, 0, *ticks));
        kpti_stream_append_plain(stream, *ticks);
    }
    kpti_stream_append_plain(stream, (uint64_t)word << 32 | (uint32_t)*ticks);
    return 1;
}

int kpti_stream_make_space(kpti_stream *stream, uint32_t events, uint64_t *ticks)
{
    const kpti_event *at = atomic_load_explicit(&stream->cursor, memory_order_relaxed);
    const kpti_event *limit = atomic_load_explicit(&stream->limit, memory_order_relaxed);
    if (limit && at < limit && (size_t)(limit - at) > events) return 1;
    if (atomic_load_explicit(&stream->ended, memory_order_relaxed)) return 0;
    if (append_remote_ends(stream, ticks)) return kpti_stream_make_space(stream, events, ticks);
    if (!(stream->dropped % RETRY_EVERY) && refill(stream, events, ticks)) return 1;
    count_dropped(stream);
    return 0;
}

/* Runs inside a callback. The host of a tracer that has not ended can't go away before this thread leaves
 * or suspends its callback. */
int kpti_stream_append_hosted(kpti_stream *stream, uint32_t word, uint64_t *now, uint64_t *at)
{
    int kept;
    if (atomic_load_explicit(&stream->ended, memory_order_relaxed)) return 0;
    *at = stream->clock(stream->clock_ctx);
    kept = kpti_stream_append(stream, word, at);
    *now = kpti_ticks(); /* Python may have run */
    return kept;
}

void kpti_stream_empty_locked(kpti_stream *stream)
{
    kpti_stream_join_locked(stream); /* asserts that no snapshot reads */
    while (stream->first) {
        kpti_chunk *chunk = stream->first;
        stream->first = chunk->next;
        kpti_budget_free_locked(stream->tracer, chunk);
    }
    kpti_assert(!stream->later);
    stream->last = NULL;
}
