/* embed_stress.c: threads that are born and die while others start and stop tracing; built with
 * ThreadSanitizer as well. KPT_CYCLES says how many times. */
#include "tests/python/lifecycle/embed.h"

#include <pthread.h>
#include <stdatomic.h>

static const char program[] =
    "import threading, sys\n"
    "sys.setswitchinterval(1e-4)\n"
    "ending = False\n"
    "def tick(n): return n\n"
    "def mark_a(): pass\n"
    "def mark_b(): pass\n"
    "def fresh():\n" /* code objects that are made and die meanwhile */
    "    space = {}\n"
    "    exec('def f(x): return x', space)\n"
    "    return space['f'](1)\n"
    "def short_life():\n"
    "    for i in range(30): tick(i); len('x'); fresh()\n"
    "def breed():\n"
    "    while not ending:\n"
    "        t = threading.Thread(target=short_life); t.start(); t.join()\n"
    "breeders = [threading.Thread(target=breed) for i in range(8)]\n"
    "for t in breeders: t.start()\n";

static atomic_int ending;

/* A thread of C's own that visits Python, and ends. */
static void *visit(void *unused)
{
    int gil = py.ensure();
    (void)unused;
    CHECK(py.run("for i in range(20): tick(i)") == 0, "visit");
    py.release(gil);
    return NULL;
}

static void *breed(void *unused)
{
    (void)unused;
    while (!atomic_load(&ending)) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, visit, NULL) == 0, "pthread_create");
        CHECK(pthread_join(thread, NULL) == 0, "pthread_join");
    }
    return NULL;
}

static void *begin_program(void)
{
    py.initialize(0);
    CHECK(py.run(program) == 0, "the program");
    return py.save();
}

static void end_program(void *state)
{
    py.restore(state);
    CHECK(py.run("ending = True\nfor t in breeders: t.join()") == 0, "the end");
    CHECK(py.finalize() == 0, "Py_FinalizeEx");
}

/* Two at once on two tracers, and one more from a thread that runs Python itself: what it calls
 * between two marks is in the recording, every time. */
void run_stress(void)
{
    enum { TICKS = 2000, PATIENCE_MS = 300000 };
    uint32_t cycles = embed_number("KPT_CYCLES", 30);
    void *state = begin_program();
    lc_cycler *first = lc_cycler_start(cycles, 300);
    lc_cycler *second = lc_cycler_start(cycles, 1000);
    pthread_t breeder;
    CHECK(pthread_create(&breeder, NULL, breed, NULL) == 0, "pthread_create");
    for (uint32_t i = 0; i < cycles; i++) {
        lc_result result;
        lc_tracer *tracer = lc_make(0, 0, 0);
        int gil = py.ensure();
        CHECK(tracer, "%s", lc_why());
        CHECK(py.run("mark_a()\nfor i in range(2000): tick(i)\nmark_b()") == 0, "ticks");
        if (i % 2) py.release(gil);
        CHECK(lc_stop(tracer) == KPT_OK, "stop");
        if (i % 2 == 0) py.release(gil);
        CHECK(lc_deliver(tracer, &result) == KPT_OK, "deliver");
        CHECK(!result.broken, "%s", result.why);
        CHECK(result.pairs == 1 && result.min == TICKS, "%llu of %d ticks",
              (unsigned long long)result.min, TICKS);
        CHECK(result.dropped == 0, "%llu dropped", (unsigned long long)result.dropped);
        CHECK(lc_destroy(tracer) == KPT_OK, "destroy");
    }
    CHECK(lc_cycler_wait(first, PATIENCE_MS) && lc_cycler_wait(second, PATIENCE_MS), "it hangs");
    CHECK(!lc_cycler_why(first)[0], "%s", lc_cycler_why(first));
    CHECK(!lc_cycler_why(second)[0], "%s", lc_cycler_why(second));
    atomic_store(&ending, 1);
    CHECK(pthread_join(breeder, NULL) == 0, "pthread_join");
    end_program(state);
}

/* A flight recorder that is read while everybody records. */
void run_snapshots(void)
{
    enum { RING_BYTES = 1 << 20 };
    uint32_t cycles = embed_number("KPT_CYCLES", 30);
    void *state = begin_program();
    lc_tracer *ring = lc_make(0, 0, RING_BYTES);
    lc_tracer *all = lc_make(0, 0, 0);
    lc_result result;
    CHECK(ring && all, "%s", lc_why());
    for (uint32_t i = 0; i < cycles; i++) {
        lc_sleep_ms(2);
        CHECK(lc_snapshot(i % 4 == 0 ? all : ring, &result) == KPT_OK, "%d", result.status);
        CHECK(!result.broken, "snapshot %u: %s", i, result.why);
    }
    CHECK(lc_stop(ring) == KPT_OK && lc_stop(all) == KPT_OK, "stop");
    CHECK(lc_deliver(ring, &result) == KPT_OK && !result.broken, "%s", result.why);
    CHECK(lc_deliver(all, &result) == KPT_OK && !result.broken, "%s", result.why);
    CHECK(result.ticks > 0, "no ticks");
    CHECK(lc_destroy(ring) == KPT_OK && lc_destroy(all) == KPT_OK, "destroy");
    end_program(state);
}
