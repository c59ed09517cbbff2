/* scenario_fork.c: fork with live objects: the child's are stopped and empty, the parent's continue; makes
 * on many threads at once, and forks among them or while a backend is loaded, which must never hang the
 * child. */
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/abi/loading/helper.h"

/* A hang becomes a failure: the signal ends the process. */
enum { PATIENCE_S = 60, THREADS = 4, FORKS = 150, MAKES = 10, MAKES_OF_A_THREAD = 300 };

static uint32_t state_of(kpt_tracer tracer)
{
    kpt_stats stats;
    KPT_INIT(&stats);
    CHECK(tracer.ops->get_stats(tracer.self, &stats) == KPT_OK, "get_stats");
    return stats.state;
}

static kpt_status unexpected(void *ctx, const kpt_batch *batch)
{
    (void)ctx;
    CHECK(batch->activity_count == 0, "a recording survived the fork");
    return KPT_OK;
}

static void be_child(bound *b, kpt_tracer running, kpt_tracer stopped, kpt_memory_tracer memory,
                     kpt_observer observer)
{
    kpt_delivery delivery;
    kpt_tracer made;
    const char *text;
    KPT_INIT(&delivery);
    delivery.sink = unexpected;
    CHECK(state_of(running) == KPT_STATE_STOPPED, "state %u", state_of(running));
    CHECK(running.ops->get_events(running.self, &delivery) == KPT_OK, "get_events");
    CHECK(running.ops->stop(running.self) == KPT_OK, "the first stop is legal");
    CHECK(running.ops->stop(running.self) == KPT_E_STATE, "and the second is not");
    text = error_text(running.ops->last_error, running.self);
    CHECK(strstr(text, "stopped"), "the text: %s", text);
    CHECK(stopped.ops->stop(stopped.self) == KPT_E_STATE, "this one was stopped before");
    CHECK(running.ops->restart(running.self) == KPT_OK, "restart");
    CHECK(state_of(running) == KPT_STATE_RUNNING, "state %u", state_of(running));
    CHECK(running.ops->stop(running.self) == KPT_OK, "stop after restart");
    CHECK(memory.ops->stop(memory.self) == KPT_OK, "stop");
    CHECK(observer.ops->start(observer.self) == KPT_E_STATE, "its file is the parent's");
    made = make_tracer(b);
    CHECK(state_of(made) == KPT_STATE_RUNNING, "a new one");
    CHECK(made.ops->destroy(made.self) == KPT_OK, "destroy");
    CHECK(running.ops->destroy(running.self) == KPT_OK, "destroy");
    CHECK(stopped.ops->destroy(stopped.self) == KPT_OK, "destroy");
    CHECK(memory.ops->destroy(memory.self) == KPT_OK, "destroy");
    CHECK(observer.ops->destroy(observer.self) == KPT_OK, "destroy");
    release(b);
    _exit(0);
}

static void wait_for(pid_t child)
{
    int status = 0;
    CHECK(child > 0, "fork");
    CHECK(waitpid(child, &status, 0) == child, "waitpid");
    CHECK(status == 0, "the child ended with status 0x%x%s", (unsigned)status,
          WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? ": it hung" : "");
}

void run_fork(void)
{
    bound *b = bind_host("forks");
    kpt_tracer running = make_tracer(b), stopped = make_tracer(b);
    kpt_memory_tracer memory = make_memory(b);
    kpt_observer observer = make_observer(b);
    pid_t child;
    CHECK(stopped.ops->stop(stopped.self) == KPT_OK, "stop");
    CHECK(memory.ops->start(memory.self) == KPT_OK, "start");
    CHECK(observer.ops->open(observer.self, kpt_str_of("unused.json")) == KPT_OK, "open");
    CHECK(observer.ops->start(observer.self) == KPT_OK, "start");
    (void)alarm(PATIENCE_S);
    child = fork();
    if (child == 0) {
        (void)alarm(PATIENCE_S);
        be_child(b, running, stopped, memory, observer);
    }
    wait_for(child);
    CHECK(state_of(running) == KPT_STATE_RUNNING, "the parent's is %u", state_of(running));
    CHECK(running.ops->stop(running.self) == KPT_OK, "stop");
    CHECK(observer.ops->stop(observer.self) == KPT_OK, "stop");
    CHECK(running.ops->destroy(running.self) == KPT_OK, "destroy");
    CHECK(stopped.ops->destroy(stopped.self) == KPT_OK, "destroy");
    CHECK(memory.ops->destroy(memory.self) == KPT_OK, "destroy");
    CHECK(observer.ops->destroy(observer.self) == KPT_OK, "destroy");
    release(b);
}

static atomic_int enough;

static void make_and_destroy(bound *b)
{
    kpt_tracer tracer = make_tracer(b);
    CHECK(tracer.ops->destroy(tracer.self) == KPT_OK, "destroy");
}

static void *make_until_enough(void *ctx)
{
    while (!atomic_load(&enough))
        make_and_destroy(ctx);
    return NULL;
}

static void *make_many(void *ctx)
{
    for (int i = 0; i < MAKES_OF_A_THREAD; i++)
        make_and_destroy(ctx);
    return NULL;
}

static void start_threads(pthread_t *threads, void *(*work)(void *ctx), void *ctx)
{
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, ctx) == 0, "pthread_create");
}

static void join_threads(const pthread_t *threads)
{
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0, "pthread_join");
}

/* Many makes at once, each of which searches for Python; ThreadSanitizer checks them. */
void run_threads(void)
{
    bound *b = bind_host("makes on threads");
    pthread_t threads[THREADS];
    start_threads(threads, make_many, b);
    join_threads(threads);
    release(b);
}

void run_fork_threads(void)
{
    static bound b;
    pthread_t threads[THREADS];
    kpt_tracer lasting;
    mock_host_init(&b.host, "forks among threads");
    /* The mock's own lock may be held at the fork, so this host provides no function that takes it. */
    b.host.table.log = NULL;
    b.host.table.alloc = NULL;
    b.host.table.dealloc = NULL;
    KPT_INIT(&b.info);
    CHECK(open_plugin()(&b.host.table, &b.info) == KPT_OK, "entry");
    lasting = make_tracer(&b);
    start_threads(threads, make_until_enough, &b);
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        if (child == 0) {
            (void)alarm(PATIENCE_S / 3);
            CHECK(lasting.ops->stop(lasting.self) == KPT_OK, "stop");
            for (int k = 0; k < MAKES; k++)
                make_and_destroy(&b);
            CHECK(lasting.ops->destroy(lasting.self) == KPT_OK, "destroy");
            _exit(0);
        }
        wait_for(child);
    }
    atomic_store(&enough, 1);
    join_threads(threads);
    CHECK(lasting.ops->destroy(lasting.self) == KPT_OK, "destroy");
    CHECK(b.info.detach(b.info.self) == KPT_OK, "detach");
}

static void *make_one(void *ctx)
{
    make_and_destroy(ctx);
    return NULL;
}

/* Forks while the backend is being loaded, which the pipe reports; fork waits for the end. */
void run_fork_load(void)
{
    bound *b = bind_host("forks while it loads");
    pthread_t maker;
    pid_t child;
    char byte = 0, number[16];
    int ends[2];
    CHECK(pipe(ends) == 0, "pipe");
    (void)snprintf(number, sizeof number, "%d", ends[1]);
    CHECK(setenv("KPT_FAKE_PIPE", number, 1) == 0, "setenv");
    CHECK(pthread_create(&maker, NULL, make_one, b) == 0, "pthread_create");
    CHECK(read(ends[0], &byte, 1) == 1 && byte == 'b', "it begins with '%c'", byte);
    child = fork();
    if (child == 0) {
        struct pollfd ended = {.fd = ends[0], .events = POLLIN};
        CHECK(poll(&ended, 1, 0) == 1, "fork did not wait");
        /* Bypasses ThreadSanitizer, which would report the parent's thread, which has ended, as one of ours
         * that was not joined. */
        (void)syscall(SYS_exit_group, 0);
    }
    wait_for(child);
    CHECK(pthread_join(maker, NULL) == 0, "pthread_join");
    release(b);
}
