/* rules_stack.c: R794–R799: what tracebacks keep alive, and where they can be gathered: threads, with and
 * without the GIL, and processes (since 1.1). */
#include <pthread.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/abi/conform/gathering.h"

static kpt_traceback_stats stats_of(conform *c, const kpt_tracebacks *t)
{
    kpt_traceback_stats stats;
    KPT_INIT(&stats);
    EXPECT_STATUS(c, KPT_OK, t->ops->get_stats(t->self, &stats));
    EXPECT(c, stats.dead <= stats.stacks, "there are more dead stacks than stacks");
    return stats;
}

static void given_back(conform *c)
{
    enum { FRAMES = 10, ROUNDS = 1 << FRAMES, KEPT = 64 };
    static kpt_traceback kept[KEPT];
    script_host host = {.count = FRAMES};
    const kpt_tracebacks t = gathering_make(c, &host);
    const uint64_t before = stats_of(c, &t).stacks;
    uint64_t dead;
    uint64_t left = 0;
    for (told_pattern = 0; told_pattern < ROUNDS; told_pattern++) {
        kpt_traceback *one = &kept[told_pattern % KEPT];
        *one = gathering_gather(c, &t, KPT_GATHER_SCRIPT, 0);
        if (told_pattern % KEPT < KEPT - 1) continue;
        EXPECT_STATUS(c, KPT_OK, t.ops->release(t.self, kept, KEPT));
        dead = stats_of(c, &t).dead;
        EXPECT_STATUS(c, KPT_OK, t.ops->free_dead(t.self, 1, &left));
        EXPECT(c, left + 1 >= dead,
               "free_dead(1) freed more than one: of %u dead stacks %u are left", (unsigned)dead,
               (unsigned)left);
        EXPECT_STATUS(c, KPT_OK, t.ops->free_dead(t.self, 0, &left));
        EXPECT(c, left == 0, "free_dead(0) left %u dead stacks", (unsigned)left);
        EXPECT(c, stats_of(c, &t).dead == 0,
               "free_dead left none, but get_stats counts dead stacks");
    }
    EXPECT_STATUS(c, KPT_OK, t.ops->free_dead(t.self, 0, NULL));
    EXPECT(c, stats_of(c, &t).stacks < before + ROUNDS / 2,
           "the number of stacks grew from %u to %u", (unsigned)before,
           (unsigned)stats_of(c, &t).stacks);
}

static void counters(conform *c)
{
    enum { NEWER = 64 };
    const uint32_t size = sizeof(kpt_traceback_stats);
    script_host host = {.count = 3};
    const kpt_tracebacks t = gathering_make(c, &host);
    kpt_traceback_stats stats;
    unsigned char *other;
    uint32_t filled;
    KPT_INIT(&stats);
    EXPECT_STATUS(c, KPT_E_INVALID, t.ops->get_stats(t.self, NULL));
    stats.struct_size = KPT_TRACEBACK_STATS_V1_SIZE - 1;
    EXPECT_STATUS(c, KPT_E_SIZE, t.ops->get_stats(t.self, &stats));
    KPT_INIT(&stats);
    other = conform_sized(&stats, size, KPT_TRACEBACK_STATS_V1_SIZE, KPT_TRACEBACK_STATS_V1_SIZE);
    EXPECT_STATUS(c, KPT_OK, t.ops->get_stats(t.self, (kpt_traceback_stats *)other));
    other = conform_sized(&stats, size, size + NEWER, size + NEWER);
    EXPECT_STATUS(c, KPT_OK, t.ops->get_stats(t.self, (kpt_traceback_stats *)other));
    memcpy(&filled, other, sizeof filled);
    EXPECT(c, filled <= size + NEWER && conform_filled(other + filled, 0xA5, size + NEWER - filled),
           "it wrote past the bytes that it reports as filled");
    (void)gathering_gather(c, &t, KPT_GATHER_SCRIPT, 0);
    stats = stats_of(c, &t);
    if (t.flags & KPT_OBJECT_NOOP) {
        EXPECT(c, !stats.stacks && !stats.places, "a no-op counts stacks or places");
        return;
    }
    EXPECT(c, stats.stacks > stats.dead, "a traceback exists, but the counter of live stacks is 0");
    EXPECT(c, stats.bytes_held > 0, "bytes_held is 0");
}

typedef struct scene {
    conform *c;
    kpt_tracebacks t;
} scene;

static uint64_t count_frames(const scene *s, const kpt_traceback *traceback)
{
    uint64_t count;
    EXPECT_STATUS(s->c, KPT_OK, s->t.ops->get_frames(s->t.self, traceback, NULL, 0, &count));
    return count;
}

/* A thread that Python does not know. The thread that waits for it may hold the GIL. */
static void *gather_as_stranger(void *ctx)
{
    const scene *s = ctx;
    const kpt_traceback got = gathering_gather(s->c, &s->t, KPT_GATHER_PYTHON | KPT_GATHER_WAIT, 0);
    EXPECT(s->c, count_frames(s, &got) == 0, "a thread unknown to Python has Python frames");
    return NULL;
}

static void wait_for_stranger(void *ctx)
{
    const scene *s = ctx;
    const kpt_traceback here = gathering_gather(s->c, &s->t, KPT_GATHER_PYTHON, 0);
    pthread_t thread;
    if (count_frames(s, &here) == 0) conform_unreached(s->c, "the plugin finds no Python");
    if (pthread_create(&thread, NULL, gather_as_stranger, ctx) != 0)
        conform_unreached(s->c, "no thread could be started");
    (void)pthread_join(thread, NULL);
}

static void stranger(conform *c)
{
    static scene s;
    s.c = c;
    s.t = gathering_make_real(c, NULL);
    gathering_in_program(c, wait_for_stranger, &s);
}

/* Another thread, which holds the GIL until DONE is posted. */
typedef struct holder {
    conform *c;
    sem_t has_it;
    sem_t done;
} holder;

static void *hold_gil(void *ctx)
{
    holder *h = ctx;
    int (*ensure)(void) = NULL;
    void (*release)(int) = NULL;
    int gil;
    *(void **)&ensure = conform_python_symbol(h->c, "PyGILState_Ensure");
    *(void **)&release = conform_python_symbol(h->c, "PyGILState_Release");
    gil = ensure();
    (void)sem_post(&h->has_it);
    (void)sem_wait(&h->done);
    release(gil);
    return NULL;
}

/* A gather that may not wait returns what can be read at once. If it waited, it would wait for ever. */
static void gather_at_once(const scene *s)
{
    holder h = {.c = s->c};
    pthread_t thread;
    kpt_traceback got;
    if (sem_init(&h.has_it, 0, 0) != 0 || sem_init(&h.done, 0, 0) != 0 ||
        pthread_create(&thread, NULL, hold_gil, &h) != 0)
        conform_unreached(s->c, "no thread could be started");
    (void)sem_wait(&h.has_it);
    got = gathering_gather(s->c, &s->t, KPT_GATHER_PYTHON, 0);
    (void)sem_post(&h.done);
    (void)pthread_join(thread, NULL);
    if (got.flags & KPT_TRACEBACK_NO_PYTHON)
        EXPECT(s->c, count_frames(s, &got) == 0,
               "KPT_TRACEBACK_NO_PYTHON is set, but there are Python frames");
}

static void gather_waiting(void *ctx)
{
    const scene *s = ctx;
    kpt_traceback got;
    if (s->c->libpython) gather_at_once(s);
    got = gathering_gather(s->c, &s->t, KPT_GATHER_PYTHON | KPT_GATHER_WAIT, 0);
    EXPECT(s->c, !(got.flags & KPT_TRACEBACK_NO_PYTHON) && count_frames(s, &got) >= 2,
           "it may wait for the GIL, but has %u Python frames", (unsigned)count_frames(s, &got));
}

static void let_go(void *ctx)
{
    const scene *s = ctx;
    const kpt_traceback here = gathering_gather(s->c, &s->t, KPT_GATHER_PYTHON, 0);
    if (count_frames(s, &here) == 0) conform_unreached(s->c, "the plugin finds no Python");
    conform_without_gil(s->c, gather_waiting, ctx);
}

static void without_gil(conform *c)
{
    static scene s;
    s.c = c;
    s.t = gathering_make_real(c, NULL);
    gathering_in_program(c, let_go, &s);
}

enum { THREADS = 8, ROUNDS = 100 };

typedef struct worker {
    scene s;
    uint32_t number;
} worker;

/* Returns 1 if a frame that this thread reported is among the read frames. */
static int is_told(const symbol_log *log, uint32_t frame)
{
    char name[TOLD_TEXT];
    told_name(name, frame);
    for (uint64_t i = 0; i < log->spans[0].count; i++)
        if (strcmp(symbol_log_at(log, 0, i)->name, name) == 0) return 1;
    return 0;
}

static void *gather_and_read(void *ctx)
{
    const worker *w = ctx;
    conform *c = w->s.c;
    const kpt_tracebacks *t = &w->s.t;
    told_pattern = w->number;
    for (int i = 0; i < ROUNDS; i++) {
        kpt_traceback some[2];
        const symbol_log *log;
        some[0] = some[1] = gathering_gather(c, t, KPT_GATHER_SCRIPT, 0);
        EXPECT_STATUS(c, KPT_OK, t->ops->retain(t->self, &some[0], 1));
        log = gathering_read(c, t, &some[0], 1);
        for (uint32_t k = 0; k < log->spans[0].count; k++)
            EXPECT(c, is_told(log, k), "frame %u of thread %u is of another thread", k, w->number);
        free((void *)(uintptr_t)log);
        EXPECT_STATUS(c, KPT_OK, t->ops->free_dead(t->self, 2, NULL));
        EXPECT_STATUS(c, KPT_OK, t->ops->release(t->self, some, 2));
        (void)stats_of(c, t);
    }
    return NULL;
}

static void many_threads(conform *c)
{
    static script_host host = {.count = 3};
    static worker workers[THREADS];
    pthread_t threads[THREADS];
    const kpt_tracebacks t = gathering_make(c, &host);
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (worker){{c, t}, i};
        if (pthread_create(&threads[i], NULL, gather_and_read, &workers[i]) != 0)
            conform_unreached(c, "no thread could be started");
    }
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
}

/* Runs in the child of a fork. Returns 0, or the number of the failed check. */
static int child_finds(const kpt_tracebacks *t, const kpt_traceback *before, uint64_t frames)
{
    static symbol_log log;
    kpt_traceback now;
    if (t->ops->symbolize(t->self, before, 1, symbol_log_take, &log) != KPT_OK) return 1;
    if (log.wrong || log.spans[0].count != frames) return 2;
    if (t->ops->gather(t->self, KPT_GATHER_SCRIPT, 0, &now) != KPT_OK) return 3;
    if (t->ops->release(t->self, &now, 1) != KPT_OK) return 4;
    if (t->ops->free_dead(t->self, 0, NULL) != KPT_OK) return 5;
    return t->ops->destroy(t->self) == KPT_OK ? 0 : 6;
}

static void forked(conform *c)
{
    static const char *const wrong[] = {"",
                                        "symbolize failed",
                                        "a traceback that was gathered before has other frames",
                                        "gather failed",
                                        "release failed",
                                        "free_dead failed",
                                        "destroy failed"};
    enum { SECONDS = 20 };
    script_host host = {.count = 3};
    const kpt_tracebacks t = gathering_make(c, &host);
    const kpt_traceback got = gathering_gather(c, &t, KPT_GATHER_SCRIPT, 0);
    const uint64_t frames = gathering_read(c, &t, &got, 1)->spans[0].count;
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        (void)alarm(SECONDS);
        _exit(child_finds(&t, &got, frames));
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid) conform_unreached(c, "fork failed");
    EXPECT(c, WIFEXITED(status), "the child crashed, or hung");
    EXPECT(c, WEXITSTATUS(status) == 0, "in the child %s", wrong[WEXITSTATUS(status) % 7]);
    EXPECT(c, gathering_read(c, &t, &got, 1)->spans[0].count == frames,
           "in the parent it has other frames than before");
}

const conform_rule conform_stack_rules[] = {
    RULE(R794, "free_dead frees released stacks, and no more than the given number", given_back),
    RULE(R795, "get_stats fills the host's struct with correct counters of tracebacks", counters),
    RULE(R796, "a thread unknown to Python has no Python frames, and gather does not wait",
         stranger),
    RULE(R797,
         "a thread that released the GIL waits for it only if the flags allow, and then has its "
         "frames",
         without_gil),
    RULE(R798, "tracebacks can be gathered and read on many threads at once", many_threads),
    RULE(R799, "tracebacks are valid in the child of a fork, too", forked),
    {NULL, NULL, NULL},
};
