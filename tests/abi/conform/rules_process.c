/* rules_process.c: R80x: fork, several hosts, several threads. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/abi/conform/conform.h"

static kpt_status count_activities(void *ctx, const kpt_batch *batch)
{
    *(uint64_t *)ctx += batch->activity_count;
    return KPT_OK;
}

static kpt_status deliver(const kpt_tracer *t, uint64_t *count)
{
    kpt_delivery delivery;
    KPT_INIT(&delivery);
    delivery.sink = count_activities;
    delivery.sink_ctx = count;
    *count = 0;
    return t->ops->get_events(t->self, &delivery);
}

/* Runs in the child of a fork. The result becomes the child's exit code: 0, or the number of the failed
 * check. */
static int child_finds(const kpt_tracer *t)
{
    uint64_t count;
    kpt_stats stats;
    KPT_INIT(&stats);
    if (t->ops->get_stats(t->self, &stats) != KPT_OK || stats.state != KPT_STATE_STOPPED) return 1;
    if (deliver(t, &count) != KPT_OK) return 2;
    if (count != 0) return 3;
    if (t->ops->stop(t->self) != KPT_OK) return 4;
    if (t->ops->stop(t->self) != KPT_E_STATE) return 5;
    if (t->ops->destroy(t->self) != KPT_OK) return 6;
    return 0;
}

static int fork_and_wait(const kpt_tracer *t)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) _exit(child_finds(t));
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status)) return 7;
    return WEXITSTATUS(status);
}

static void forked_child(conform *c)
{
    static const char *const wrong[] = {"",
                                        "its state is not STOPPED",
                                        "get_events is not legal",
                                        "it still holds activities",
                                        "the first stop is not legal",
                                        "the second stop is not KPT_E_STATE",
                                        "destroy failed",
                                        "it crashed"};
    kpt_tracer t;
    int result;
    conform_make(c, &t);
    conform_workload(c);
    result = fork_and_wait(&t);
    EXPECT(c, result == 0, "in the child %s", wrong[result]);
}

static void forking_parent(conform *c)
{
    kpt_tracer t;
    uint64_t with_fork;
    uint64_t without;
    kpt_stats stats;
    conform_record(c, &t);
    if (deliver(&t, &without) != KPT_OK) conform_unreached(c, "get_events failed");
    (void)t.ops->destroy(t.self);
    conform_make(c, &t);
    (void)fork_and_wait(&t);
    KPT_INIT(&stats);
    EXPECT_STATUS(c, KPT_OK, t.ops->get_stats(t.self, &stats));
    EXPECT(c, stats.state == KPT_STATE_RUNNING, "the parent's tracer was stopped by a fork");
    conform_workload(c);
    EXPECT_STATUS(c, KPT_OK, t.ops->stop(t.self));
    EXPECT_STATUS(c, KPT_OK, deliver(&t, &with_fork));
    /* The number of activities varies, since threads wait for each other. A fork that cuts the recording
     * off loses all of them. */
    EXPECT(c, with_fork >= without / 2,
           "the parent has %llu activities, without a fork it had %llu",
           (unsigned long long)with_fork, (unsigned long long)without);
}

static void two_hosts(conform *c)
{
    static mock_host second;
    kpt_plugin_info info;
    kpt_tracer_args args;
    kpt_tracer t;
    uint64_t before;
    uint64_t calls;
    conform_enter(c);
    mock_host_init(&second, "the second host");
    KPT_INIT(&info);
    EXPECT_STATUS(c, KPT_OK, c->entry(&second.table, &info));
    before = second.alloc_calls;
    calls = c->host.alloc_calls;
    KPT_INIT(&args);
    KPT_INIT(&t);
    if (second.make_tracer(second.tracer_ctx, &args, &t) != KPT_OK || !t.ops || !t.self ||
        t.ops->struct_size < KPT_TRACER_OPS_V1_SIZE)
        conform_unreached(c, "no tracer was made");
    EXPECT(c, c->host.alloc_calls == calls,
           "the second host's objects used the first host's allocator");
    if (second.alloc_calls == before) conform_unreached(c, "make allocated no memory");
    (void)t.ops->stop(t.self);
    EXPECT_STATUS(c, KPT_OK, t.ops->destroy(t.self));
    EXPECT_STATUS(c, KPT_OK, info.detach(info.self));
    EXPECT(c, second.live_blocks == 0, "the second host's memory was not freed");
}

enum { THREADS = 8, ROUNDS = 20 };

static void *make_and_destroy(void *ctx)
{
    conform *c = ctx;
    for (int i = 0; i < ROUNDS; i++) {
        kpt_tracer_args args;
        kpt_tracer t;
        KPT_INIT(&args);
        KPT_INIT(&t);
        if (conform_try_make(c, &args, &t) != KPT_OK) return "make failed";
        if (t.ops->stop(t.self) != KPT_OK) return "stop failed";
        if (t.ops->destroy(t.self) != KPT_OK) return "destroy failed";
    }
    return NULL;
}

static void many_threads(conform *c)
{
    pthread_t threads[THREADS];
    kpt_tracer t;
    conform_make(c, &t);
    if (t.ops->stop(t.self) != KPT_OK || t.ops->destroy(t.self) != KPT_OK)
        conform_unreached(c, "stop or destroy failed");
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, make_and_destroy, c) != 0)
            conform_unreached(c, "no thread could be started");
    for (int i = 0; i < THREADS; i++) {
        void *failure;
        (void)pthread_join(threads[i], &failure);
        EXPECT(c, !failure, "on a thread among %d %s", THREADS, (const char *)failure);
    }
}

const conform_rule conform_process_rules[] = {
    RULE(R801, "after a fork the child's tracer is stopped and empty", forked_child),
    RULE(R802, "after a fork the parent's tracer continues", forking_parent),
    RULE(R803, "each host's objects use its own allocator", two_hosts),
    RULE(R804, "tracers can be made and destroyed on many threads at once", many_threads),
    {NULL, NULL, NULL},
};
