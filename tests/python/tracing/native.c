/* native.c: what the tests need in C, since no Python may run there: a thread that is not Python's, an
 * answer for thread_attach, two clocks, and a sink that keeps chunks. One log per process; its user resets
 * it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "abi/kpt.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT uint64_t native_attach(void *ctx, uint64_t os_tid);
EXPORT uint64_t native_ticks(void *ctx);
EXPORT uint64_t native_tenths(void *ctx);
EXPORT int native_in_thread(void (*work)(void));
EXPORT void native_log_reset(uint64_t refuse_every);
EXPORT kpt_status native_chunk(void *ctx, const kpt_chunk *chunk);
EXPORT uint64_t native_log_count(void);
EXPORT const kpt_chunk *native_log_chunk(uint64_t index);

/* The host's value of a thread: its id, and a mark that it has been here. */
uint64_t native_attach(void *ctx, uint64_t os_tid)
{
    (void)ctx;
    return os_tid << 8 | 0xA5;
}

static _Atomic uint64_t ticks = UINT64_C(1) << 40;

/* A host's clock, that moves on by one at each reading. */
uint64_t native_ticks(void *ctx)
{
    (void)ctx;
    return atomic_fetch_add(&ticks, 1);
}

/* Another, in tenths of a microsecond. */
uint64_t native_tenths(void *ctx)
{
    struct timespec now;
    (void)ctx;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 10000000 + (uint64_t)now.tv_nsec / 100;
}

static void *run(void *work)
{
    void (*function)(void);
    memcpy(&function, &work, sizeof function);
    (void)pthread_setname_np(pthread_self(), "native");
    function();
    return NULL;
}

/* Runs WORK in a thread of our own, named "native", to its end. */
int native_in_thread(void (*work)(void))
{
    pthread_t thread;
    void *argument;
    int error;
    memcpy(&argument, &work, sizeof argument);
    error = pthread_create(&thread, NULL, run, argument);
    return error ? error : pthread_join(thread, NULL);
}

enum { MAX_CHUNKS = 4096 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static kpt_chunk chunks[MAX_CHUNKS]; /* their data are copies */
static uint64_t count, calls, refuse;

/* Empties the log; then refuses every REFUSE_EVERYth chunk, none for 0. */
void native_log_reset(uint64_t refuse_every)
{
    pthread_mutex_lock(&lock);
    for (uint64_t i = 0; i < count; i++)
        free((void *)(uintptr_t)chunks[i].data);
    count = calls = 0;
    refuse = refuse_every;
    pthread_mutex_unlock(&lock);
}

kpt_status native_chunk(void *ctx, const kpt_chunk *chunk)
{
    kpt_status status = KPT_E_LIMIT;
    void *copy = malloc(chunk->size_bytes ? chunk->size_bytes : 1);
    (void)ctx;
    pthread_mutex_lock(&lock);
    calls++;
    if (copy && count < MAX_CHUNKS && !(refuse && calls % refuse == 0)) {
        memcpy(copy, chunk->data, chunk->size_bytes);
        chunks[count] = *chunk;
        chunks[count++].data = copy;
        copy = NULL;
        status = KPT_OK;
    }
    pthread_mutex_unlock(&lock);
    free(copy);
    return status;
}

uint64_t native_log_count(void)
{
    return count;
}

const kpt_chunk *native_log_chunk(uint64_t index)
{
    return &chunks[index];
}
