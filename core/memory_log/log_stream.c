#include "core/memory_log/log_stream.h"

#include <stdlib.h>
#include <time.h>

#include "core/base/helper_thread.h"
#include "core/memory_log/log_chunks.h"

/* Chunks of 64 kB: how many wake the thread, and how many recording threads may be ahead of it. */
enum { MIN_WAKE = 8, MAX_AHEAD = 128, INTERVAL_S = 1 };

struct kpti_log_stream {
    kpti_memory_log *log;
    pthread_mutex_t delivery; /* guards rests, packer, and the log's chunks that are being read */
    int rests;                /* no thread records: the sink's file may be closed */
    kpti_event_packer *packer;
    kpti_clock_point began;
    pthread_t thread;
    pthread_mutex_t wakes; /* guards the next two, for a moment */
    pthread_cond_t wake;
    int is_wanted;
    int is_ending;
};

static void deliver_locked(kpti_log_stream *s, int is_end)
{
    kpti_clock_point now;
    kpti_event_run *runs;
    uint64_t until;
    uint64_t dropped;
    const uint64_t count = kpti_memory_log_unread(s->log, &runs, &until);
    if (!runs) return; /* the next delivery tries again */
    kpti_event_packer_pack(s->packer, runs, count, is_end ? UINT64_MAX : until);
    dropped = kpti_memory_log_read(s->log, runs, count);
    free(runs);
    kpti_clock_calibrate(&now);
    /* The rate takes 10 ms to measure in a recording that is shorter, so only its end does that. */
    (void)kpti_event_packer_flush(s->packer, &now,
                                  is_end ? kpti_clock_rate_between(&s->began, &now) : 0, dropped);
}

kpt_status kpti_log_stream_flush(kpti_log_stream *s, int is_end)
{
    kpt_status status;
    pthread_mutex_lock(&s->delivery);
    if (is_end || !s->rests) deliver_locked(s, is_end);
    s->rests |= is_end;
    status = s->packer->status;
    pthread_mutex_unlock(&s->delivery);
    return status;
}

void kpti_log_stream_resume(kpti_log_stream *s)
{
    pthread_mutex_lock(&s->delivery);
    s->rests = 0;
    pthread_mutex_unlock(&s->delivery);
}

static void request(kpti_log_stream *s, int ends)
{
    pthread_mutex_lock(&s->wakes);
    s->is_wanted = 1;
    s->is_ending |= ends;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->wakes);
}

/* A chunk of the log was closed. The calling thread is inside the log. */
static void press(kpti_log_stream *s)
{
    const uint64_t waiting = kpti_memory_log_waiting(s->log);
    if (waiting >= MIN_WAKE && waiting % MIN_WAKE == 0) request(s, 0);
    if (waiting < MAX_AHEAD) return;
    pthread_mutex_lock(&s->delivery);
    if (kpti_memory_log_waiting(s->log) >= MAX_AHEAD) deliver_locked(s, 0);
    pthread_mutex_unlock(&s->delivery);
}

/* Waits for a request, or for the next interval. Returns 0 at the end. */
static int wait_for_work(kpti_log_stream *s)
{
    struct timespec until;
    int ends;
    int error = 0;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += INTERVAL_S;
    pthread_mutex_lock(&s->wakes);
    while (!s->is_wanted && !error)
        error = pthread_cond_timedwait(&s->wake, &s->wakes, &until);
    s->is_wanted = 0;
    ends = s->is_ending;
    pthread_mutex_unlock(&s->wakes);
    return !ends;
}

static void *run(void *stream)
{
    while (wait_for_work(stream))
        (void)kpti_log_stream_flush(stream, 0);
    return NULL;
}

static void free_stream(kpti_log_stream *s)
{
    kpti_event_packer_free(s->packer);
    free(s);
}

kpt_status kpti_log_stream_begin(kpti_memory_log *log, kpt_memory_sink_fn sink, void *sink_ctx)
{
    kpti_log_stream *s = calloc(1, sizeof *s);
    pthread_condattr_t monotonic;
    if (!s) return KPT_E_MEMORY;
    s->log = log;
    s->rests = 1;
    s->packer = kpti_event_packer_make(sink, sink_ctx, kpti_memory_log_pools(log),
                                       kpti_memory_log_wish(log)->sample_bytes);
    (void)pthread_mutex_init(&s->delivery, NULL);
    (void)pthread_mutex_init(&s->wakes, NULL);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&s->wake, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    kpti_clock_calibrate(&s->began);
    if (s->packer && kpti_event_packer_flush(s->packer, &s->began, 0, 0) == KPT_OK &&
        kpti_own_thread_start(&s->thread, run, s) == 0) {
        kpti_memory_log_set_stream(log, s, press);
        return KPT_OK;
    }
    free_stream(s);
    return KPT_E_MEMORY;
}

void kpti_log_stream_end(kpti_log_stream *s)
{
    if (!s) return;
    request(s, 1);
    (void)pthread_join(s->thread, NULL);
    kpti_memory_log_set_stream(s->log, NULL, NULL);
    (void)pthread_cond_destroy(&s->wake);
    (void)pthread_mutex_destroy(&s->wakes);
    (void)pthread_mutex_destroy(&s->delivery);
    free_stream(s);
}

/* The thread may have been anywhere, so nothing but memory is touched. */
void kpti_log_stream_forked(kpti_log_stream *s)
{
    if (!s) return;
    kpti_memory_log_set_stream(s->log, NULL, NULL);
    free_stream(s);
}
