/* embed_traceback.c: tracebacks gathered, released and made readable by many threads at once, with the GIL,
 * without it and outside of Python, while collections run and code objects die; then the interpreter ends
 * with some alive. Built with ThreadSanitizer as well. KPT_CYCLES says how many rounds. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "tests/python/lifecycle/embed.h"

enum { BOXES = 64, THREADS = 8, STRANGERS = 2, ROUNDS_A_CYCLE = 20 };

static kpt_tracebacks gatherer;

/* Whoever gathers puts it into a box, and releases what was in there: most often another thread's. */
static struct box {
    pthread_mutex_t lock;
    kpt_traceback traceback;
} boxes[BOXES];
static atomic_uint next_box;

static void swap_box(kpt_traceback *traceback)
{
    struct box *box = &boxes[atomic_fetch_add(&next_box, 1) % BOXES];
    kpt_traceback before;
    pthread_mutex_lock(&box->lock);
    before = box->traceback;
    box->traceback = *traceback;
    pthread_mutex_unlock(&box->lock);
    *traceback = before;
}

static int is(kpt_str text, const char *wanted)
{
    return kpt_str_is(text, wanted);
}

/* Every traceback of the program is in climb or made, called by a thread's work or, wherever a collection
 * was due, by a finalizer. */
static kpt_status check_names(void *ctx, const kpt_symbols *symbols)
{
    const kpt_symbol_span *span = &symbols->spans[0];
    const kpt_symbol *first = &symbols->symbols[symbols->frames[span->first]];
    uint64_t callers = 0;
    (void)ctx;
    CHECK(symbols->span_count == 1 && span->count > 0, "%llu frames",
          (unsigned long long)span->count);
    CHECK(is(first->name, "climb") || is(first->name, "made"), "it is in %.*s",
          (int)first->name.size, first->name.data);
    CHECK(!is(first->name, "made") || is(first->file, "made.py"), "made is in %.*s",
          (int)first->file.size, first->file.data);
    for (uint64_t i = 0; i < span->count; i++) {
        const kpt_str name = symbols->symbols[symbols->frames[span->first + i]].name;
        callers += is(name, "work") || is(name, "__del__");
    }
    CHECK(callers > 0, "nobody has called it");
    return KPT_OK;
}

static void read_one(const kpt_traceback *traceback)
{
    CHECK(gatherer.ops->symbolize(gatherer.self, traceback, 1, check_names, NULL) == KPT_OK,
          "symbolize");
}

/* gather(), called by the program: with the GIL, then without. */
static void *gather(void *self, void *unused)
{
    kpt_traceback traceback;
    void *state;
    (void)self;
    (void)unused;
    CHECK(gatherer.ops->gather(gatherer.self, KPT_GATHER_PYTHON, 0, &traceback) == KPT_OK,
          "gather");
    CHECK(traceback.python && !traceback.flags, "flags %u", traceback.flags);
    read_one(&traceback);
    swap_box(&traceback);
    CHECK(gatherer.ops->release(gatherer.self, &traceback, 1) == KPT_OK, "release");
    state = py.save();
    CHECK(gatherer.ops->gather(gatherer.self, KPT_GATHER_PYTHON | KPT_GATHER_WAIT, 0, &traceback) ==
              KPT_OK,
          "gather without");
    CHECK(traceback.python, "flags %u without", traceback.flags);
    read_one(&traceback);
    swap_box(&traceback);
    CHECK(gatherer.ops->release(gatherer.self, &traceback, 1) == KPT_OK, "release without");
    py.restore(state);
    return py.new_int(1);
}

static struct { /* a PyMethodDef */
    const char *name;
    void *(*function)(void *, void *);
    int flags;
    const char *doc;
} gather_method = {"gather", gather, 4 /* METH_NOARGS */, NULL};

static const char program[] =
    "import gc, sys, threading\n"
    "sys.setswitchinterval(1e-4)\n"
    "def climb(n):\n"
    "    return climb(n - 1) if n else gather()\n"
    "class Dying:\n"
    "    def __del__(self): climb(2)\n"
    "def work(rounds):\n"
    "    for i in range(rounds):\n"
    "        climb(i % 40)\n"
    "        space = {'gather': gather}\n"
    "        exec(compile('\\n' * (i % 9) + 'def made(): return gather()', 'made.py', 'exec'), "
    "space)\n"
    "        space['made']()\n"
    "        d = Dying(); d.self = d; del d\n"
    "        if i % 7 == 0: gc.collect()\n"
    "threads = []\n"
    "def begin(count, rounds):\n"
    "    threads[:] = [threading.Thread(target=work, args=(rounds,)) for i in range(count)]\n"
    "    for t in threads: t.start()\n"
    "def end():\n"
    "    for t in threads: t.join()\n"
    "    gc.collect()\n";

static atomic_int ending;

/* A thread that Python does not know: it gets nothing, at once, and releases what others gathered. */
static void *stranger(void *unused)
{
    (void)unused;
    while (!atomic_load(&ending)) {
        kpt_traceback traceback;
        kpt_traceback_stats stats;
        CHECK(gatherer.ops->gather(gatherer.self, KPT_GATHER_PYTHON | KPT_GATHER_WAIT, 0,
                                   &traceback) == KPT_OK,
              "gather outside");
        CHECK(!traceback.python && traceback.flags == KPT_TRACEBACK_NO_PYTHON, "flags %u outside",
              traceback.flags);
        swap_box(&traceback);
        if (traceback.python) read_one(&traceback);
        CHECK(gatherer.ops->release(gatherer.self, &traceback, 1) == KPT_OK, "release outside");
        CHECK(gatherer.ops->free_dead(gatherer.self, 10, NULL) == KPT_OK, "free_dead");
        KPT_INIT(&stats);
        CHECK(gatherer.ops->get_stats(gatherer.self, &stats) == KPT_OK, "get_stats");
    }
    return NULL;
}

static void run_threads(uint32_t rounds)
{
    pthread_t strangers[STRANGERS];
    char text[80];
    void *state;
    (void)snprintf(text, sizeof text, "begin(%d, %u)", THREADS, rounds);
    CHECK(py.run(text) == 0, "begin");
    for (int i = 0; i < STRANGERS; i++)
        CHECK(pthread_create(&strangers[i], NULL, stranger, NULL) == 0, "pthread_create");
    CHECK(py.run("end()") == 0, "end");
    atomic_store(&ending, 1);
    state = py.save();
    for (int i = 0; i < STRANGERS; i++)
        CHECK(pthread_join(strangers[i], NULL) == 0, "pthread_join");
    py.restore(state);
    CHECK(py.run("work(1); gc.collect()") == 0, "work"); /* so that some are alive at the end */
}

/* Python is gone: what is alive reads as before, and goes. */
static void end_all(void)
{
    kpt_traceback traceback = {0};
    uint64_t left = 1;
    uint64_t alive = 0;
    CHECK(gatherer.ops->gather(gatherer.self, KPT_GATHER_PYTHON, 0, &traceback) == KPT_OK &&
              traceback.flags == KPT_TRACEBACK_NO_PYTHON,
          "flags %u without a Python", traceback.flags);
    for (int i = 0; i < BOXES; i++) {
        if (!boxes[i].traceback.python) continue;
        alive++;
        read_one(&boxes[i].traceback);
        CHECK(gatherer.ops->release(gatherer.self, &boxes[i].traceback, 1) == KPT_OK, "release");
    }
    CHECK(alive > 0, "none was alive");
    CHECK(gatherer.ops->free_dead(gatherer.self, 0, &left) == KPT_OK && left == 0, "%llu left",
          (unsigned long long)left);
    CHECK(gatherer.ops->destroy(gatherer.self) == KPT_OK, "destroy");
}

void run_tracebacks(void)
{
    const char *error;
    for (int i = 0; i < BOXES; i++)
        CHECK(pthread_mutex_init(&boxes[i].lock, NULL) == 0, "pthread_mutex_init");
    py.initialize(0);
    error = lc_make_tracebacks(&gatherer);
    CHECK(!error, "%s", error);
    CHECK(py.set_attribute(py.add_module("__main__"), gather_method.name,
                           py.new_function(&gather_method, NULL, NULL)) == 0,
          "gather");
    CHECK(py.run(program) == 0, "the program");
    run_threads(ROUNDS_A_CYCLE * embed_number("KPT_CYCLES", 5));
    CHECK(py.finalize() == 0, "Py_FinalizeEx");
    end_all();
}
