#include "tests/native/memory_log/logs.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/memory_log/allocation_log.h"
#include "core/memory_log/export.h"
#include "core/memory_log/log_chunks.h"
#include "core/memory_log/log_stream.h"
#include "core/memory_log/sampled_blocks.h"
#include "python_tracer/allocators/host_blocks.h"
#include "python_tracer/capture/stack_capture.h"

_Static_assert((int)LOG_CHUNK == (int)KPTI_MEMORY_CHUNK, "tests know how long a chunk is");

kpti_memory_log *log_make(uint64_t most_events, uint64_t sample_bytes)
{
    return kpti_memory_log_make((kpti_memory_wish){most_events, sample_bytes, 0});
}

void log_free(kpti_memory_log *log)
{
    kpti_memory_log_free(log);
}

void log_clear(kpti_memory_log *log)
{
    kpti_memory_log_clear(log);
}

int log_begin(kpti_memory_log *log)
{
    if (kpti_memory_log_stream(log)) kpti_log_stream_resume(kpti_memory_log_stream(log));
    return kpti_memory_log_begin(log);
}

void log_end(kpti_memory_log *log)
{
    kpti_memory_log_end(log);
}

static __thread kpti_memory_inside in;

int log_enter(void)
{
    const kpti_memory_inside entered = kpti_memory_enter();
    if (entered.log) in = entered;
    return entered.log != NULL;
}

void log_append(uint64_t now, uint64_t address, uint64_t size, uint32_t kind, uint32_t stack)
{
    kpti_memory_append(in.log, in.thread, now, address, kpti_memory_what(kind, KPTI_POOL_OBJ, size),
                       stack);
}

void log_leave(void)
{
    kpti_memory_leave(in);
}

int log_note(uint64_t now, uint64_t address, uint64_t size, uint32_t kind, uint32_t stack)
{
    if (!log_enter()) return 0;
    log_append(now, address, size, kind, stack);
    log_leave();
    return 1;
}

static __thread uint32_t stack_now;

/* There is no Python here. */
uint32_t kpti_capture_pinned(uint32_t depth, int no_objects)
{
    (void)depth;
    (void)no_objects;
    return stack_now;
}

void log_report(kpti_memory_log *log, const kpt_memory_report *report, uint32_t stack)
{
    stack_now = stack;
    kpti_memory_report(log, report);
}

static void read_chunk(log_content *content, const kpti_memory_copy *copy, uint64_t chunk)
{
    const kpti_memory_event *e = copy->events + copy->chunks[chunk].first;
    uint64_t whole = 0;
    for (uint64_t i = 0; i < copy->chunks[chunk].count; i++, e++) {
        if (kpti_memory_kind(e) == KPTI_MEMORY_TIME) {
            whole = e->address;
            content->times++;
            continue;
        }
        content->events[content->count++] = (log_event){copy->chunks[chunk].os_tid,
                                                        (whole & ~UINT64_C(0xFFFFFFFF)) | e->ticks,
                                                        e->address,
                                                        kpti_memory_size(e),
                                                        kpti_memory_kind(e),
                                                        e->stack};
    }
}

log_content log_read(kpti_memory_log *log)
{
    kpti_memory_copy *copy = kpti_memory_log_copy(log);
    log_content content = {NULL, 0, 0, 0};
    if (!copy) return content;
    content.events = malloc((copy->event_count + 1) * sizeof *content.events);
    content.dropped = copy->dropped;
    if (!content.events) abort();
    for (uint64_t i = 0; i < copy->chunk_count; i++)
        read_chunk(&content, copy, i);
    kpti_memory_copy_free(copy);
    return content;
}

void log_content_free(log_content content)
{
    free(content.events);
}

/* What a copy of the log has: COUNTED events, or the bytes of its chunks. */
static uint64_t measure(kpti_memory_log *log, int counted)
{
    kpti_memory_copy *copy = kpti_memory_log_copy(log);
    uint64_t amount;
    if (!copy) abort();
    amount = counted ? copy->event_count : copy->chunk_count * sizeof(kpti_memory_chunk);
    kpti_memory_copy_free(copy);
    return amount;
}

uint64_t log_counted(kpti_memory_log *log)
{
    return measure(log, 1);
}

uint64_t log_bytes(kpti_memory_log *log)
{
    return measure(log, 0);
}

kpt_status log_stream_begin(kpti_memory_log *log, kpt_memory_sink_fn sink, void *sink_ctx)
{
    return kpti_log_stream_begin(log, sink, sink_ctx);
}

kpt_status log_stream_flush(kpti_memory_log *log, int is_end)
{
    return kpti_log_stream_flush(kpti_memory_log_stream(log), is_end);
}

void log_stream_end(kpti_memory_log *log)
{
    kpti_log_stream_end(kpti_memory_log_stream(log));
}

void log_forked(void)
{
    kpti_memory_logs_lock();
    kpti_memory_log_forked();
    kpti_memory_logs_unlock();
}

void sample_seed(uint64_t seed)
{
    kpti_memory_thread *thread = kpti_memory_thread_get();
    if (!thread) abort();
    thread->random = kpti_hash_spread(seed);
    *thread->until = 0;
}

int sample_takes(uint64_t size, uint64_t mean)
{
    return kpti_sample_takes(kpti_memory_self, kpti_memory_self->until, size, mean);
}

int sample_add(uint64_t address)
{
    return kpti_sample_add((uintptr_t)address, 2);
}

int sample_may_live(uint64_t address)
{
    return kpti_sample_may_live((uintptr_t)address);
}

int sample_remove(uint64_t address)
{
    return kpti_sample_remove((uintptr_t)address) == 3;
}

void samples_clear(void)
{
    kpti_samples_clear();
}

kpt_status log_export(kpti_memory_log *log, const char *path, char *error, size_t error_size)
{
    const kpti_env env = {.host = {.ctx = NULL}};
    kpti_memory_source source = {.env = &env, .log = log};
    kpti_error own = {""};
    kpt_status status;
    kpti_clock_calibrate(&source.points[0]);
    kpti_clock_calibrate(&source.points[1]);
    status = kpti_memory_export(&source, path, &own);
    if (error_size) memcpy(error, own.text, error_size < sizeof own ? error_size : sizeof own);
    return status;
}

uint64_t log_ticks(void)
{
    return kpti_ticks();
}

/* --- malloc, which may fail -------------------------------------------------------------------- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static __thread int left; /* 0: no end; 1: none */

void malloc_fails(int after)
{
    left = after;
}

static int may_have(void)
{
    if (left == 1) return 0;
    if (left) left--;
    return 1;
}

void *__wrap_malloc(size_t size)
{
    return may_have() ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return may_have() ? __real_calloc(count, size) : NULL;
}

void *__wrap_realloc(void *memory, size_t size)
{
    return may_have() ? __real_realloc(memory, size) : NULL;
}
