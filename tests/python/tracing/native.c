/* native.c: what the tests need in C, since no Python may run there: threads that are not Python's, also with
 * operators, an answer for thread_attach, two clocks, and a sink that keeps chunks. One log per process; its user resets
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
EXPORT int native_operators(const kpt_tracer_ops *ops, kpt_handle tracer, uint32_t threads,
                            uint64_t rounds, uint32_t depth);
EXPORT int native_far_operators(const kpt_tracer_ops *ops, kpt_handle tracer,
                                const kpt_operator *op, uint64_t rounds, uint32_t name,
                                uint64_t plain);
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

enum { MAX_THREADS = 64, MAX_DEPTH = 16 };

typedef struct operator_job {
    const kpt_tracer_ops *ops;
    kpt_handle tracer;
    uint64_t rounds;
    uint32_t depth;
    uint32_t names[MAX_DEPTH];
    _Atomic uint64_t begun; /* operators that have a token */
} operator_job;

/* Runs operators that nest DEPTH deep inside one that lasts for all rounds. */
static void *run_operators(void *arg)
{
    operator_job *job = arg;
    uint64_t tokens[MAX_DEPTH] = {0};
    uint64_t begun = 0;
    kpt_operator op;
    (void)pthread_setname_np(pthread_self(), "operators");
    KPT_INIT(&op);
    for (uint64_t round = 0; round < job->rounds; round++) {
        for (uint32_t i = round ? 1 : 0; i < job->depth; i++) {
            op.name = job->names[i];
            op.sequence_plus_1 = round + 1;
            (void)job->ops->begin_operator(job->tracer, &op, &tokens[i]);
            begun += tokens[i] != 0;
        }
        for (uint32_t i = job->depth; i-- > 1;)
            (void)job->ops->end_operator(job->tracer, tokens[i]);
    }
    (void)job->ops->end_operator(job->tracer, tokens[0]);
    atomic_fetch_add(&job->begun, begun);
    return NULL;
}

/* Runs operators op0, op1 … in THREADS threads without Python, to their ends. Returns how many began. */
int native_operators(const kpt_tracer_ops *ops, kpt_handle tracer, uint32_t threads,
                     uint64_t rounds, uint32_t depth)
{
    operator_job job = {.ops = ops, .tracer = tracer, .rounds = rounds, .depth = depth};
    pthread_t ids[MAX_THREADS];
    uint32_t started = 0;
    for (uint32_t i = 0; i < depth && i < MAX_DEPTH; i++) {
        char name[8] = {'o', 'p', (char)('0' + i), 0};
        if (ops->name_operator(tracer, kpt_str_of(name), KPT_SCOPE_FUNCTION, &job.names[i]))
            return -1;
    }
    while (started < threads && started < MAX_THREADS &&
           !pthread_create(&ids[started], NULL, run_operators, &job))
        started++;
    for (uint32_t i = 0; i < started; i++)
        (void)pthread_join(ids[i], NULL);
    return (int)job.begun;
}

typedef struct remote_end {
    const kpt_tracer_ops *ops;
    kpt_handle tracer;
    uint64_t token;
} remote_end;

static void *end_there(void *arg)
{
    const remote_end *end = arg;
    (void)end->ops->end_operator(end->tracer, end->token);
    return NULL;
}

/* Begins OP and ends it on another thread, ROUNDS times. Then runs PLAIN operators with NAME. Returns how many ended. */
int native_far_operators(const kpt_tracer_ops *ops, kpt_handle tracer, const kpt_operator *op,
                         uint64_t rounds, uint32_t name, uint64_t plain)
{
    kpt_operator other;
    int ended = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        remote_end end = {ops, tracer, 0};
        pthread_t id;
        (void)ops->begin_operator(tracer, op, &end.token);
        if (pthread_create(&id, NULL, end_there, &end)) return -1;
        (void)pthread_join(id, NULL);
        ended += end.token != 0;
    }
    KPT_INIT(&other);
    other.name = name;
    while (plain--) {
        uint64_t token = 0;
        (void)ops->begin_operator(tracer, &other, &token);
        (void)ops->end_operator(tracer, token);
    }
    return ended;
}
