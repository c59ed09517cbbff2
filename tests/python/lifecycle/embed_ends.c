/* embed_ends.c: interpreters that end while a tracer runs, and the next ones in the process. */
#include "tests/python/lifecycle/embed.h"

#include <stdio.h>

static const char program[] = "import gc\n"
                              "def tick(): pass\n"
                              "class Late:\n"
                              "    def __del__(self, tick=tick): tick(); [].append(len('x'))\n"
                              "late = Late()\n"
                              "for i in range(1000): tick()\n"
                              "gc.collect()\n";

/* A daemon thread that goes on while the interpreter ends. */
static const char daemon_program[] = "import threading\n"
                                     "def spin():\n"
                                     "    def tick(): pass\n"
                                     "    while True: tick()\n"
                                     "for i in range(2):\n"
                                     "    threading.Thread(target=spin, daemon=True).start()\n";

static void check_ticks(lc_tracer *tracer, uint64_t min)
{
    lc_result result;
    CHECK(lc_deliver(tracer, &result) == KPT_OK, "status %d", result.status);
    CHECK(!result.broken, "%s", result.why);
    CHECK(result.ticks >= min, "%llu ticks", (unsigned long long)result.ticks);
    CHECK(result.gc >= 1, "%llu collections", (unsigned long long)result.gc);
}

static lc_tracer *make_with_gc(void)
{
    lc_tracer *tracer = lc_make(0, 0, 0);
    CHECK(tracer, "%s", lc_why());
    CHECK(lc_register_gc(tracer) == KPT_OK, "register_gc_callback");
    return tracer;
}

/* The tracer runs while its Python ends; all that follows is legal, and touches no Python. */
static void finalize_with(const char *also)
{
    enum { ROUNDS = 3 };
    for (int i = 0; i < ROUNDS; i++) {
        lc_tracer *running, *stopped;
        py.initialize(0);
        running = make_with_gc();
        stopped = make_with_gc();
        CHECK(py.run(program) == 0, "the program");
        CHECK(lc_stop(stopped) == KPT_OK, "stop");
        CHECK(py.run(also) == 0, "%s", also);
        CHECK(py.finalize() == 0, "Py_FinalizeEx");
        CHECK(lc_state(running) == KPT_STATE_RUNNING, "the host has not stopped it");
        CHECK(lc_stop(running) == KPT_OK, "stop after the end");
        check_ticks(running, 1000);
        check_ticks(stopped, 1000);
        CHECK(lc_restart(running) != KPT_OK, "there is no Python to restart in");
        CHECK(!lc_make(0, 0, 0), "nor to make one in");
        CHECK(lc_register_gc(running) == KPT_OK, "again is no change");
        CHECK(lc_destroy(running) == KPT_OK, "destroy");
        CHECK(lc_destroy(stopped) == KPT_OK, "destroy");
        CHECK(lc_live_blocks() <= 1, "%lld blocks", (long long)lc_live_blocks()); /* the binding */
    }
}

void run_finalize(void)
{
    finalize_with("pass");
}

void run_daemons(void)
{
    finalize_with(daemon_program);
}

/* One tracer over two interpreters: restart appends. */
void run_restart_in_next(void)
{
    lc_tracer *tracer;
    py.initialize(0);
    tracer = make_with_gc();
    CHECK(py.run(program) == 0, "the program");
    CHECK(py.finalize() == 0, "Py_FinalizeEx");
    CHECK(lc_stop(tracer) == KPT_OK, "stop");
    py.initialize(0);
    CHECK(py.run(program) == 0, "not recorded");
    CHECK(lc_restart(tracer) == KPT_OK, "%s", lc_why());
    CHECK(py.run(program) == 0, "the program");
    CHECK(lc_stop(tracer) == KPT_OK, "stop");
    check_ticks(tracer, 2000);
    CHECK(lc_restart(tracer) == KPT_OK, "%s", lc_why());
    CHECK(py.run(program) == 0, "the program");
    CHECK(py.finalize() == 0, "Py_FinalizeEx");
    CHECK(lc_stop(tracer) == KPT_OK, "stop");
    check_ticks(tracer, 3000);
    CHECK(lc_destroy(tracer) == KPT_OK, "destroy");
}

static lc_tracer *made_at_exit;

/* A PyCFunction: ctypes itself does not survive a second interpreter on 3.12. */
static void *make_at_exit(void *self, void *unused)
{
    (void)self;
    (void)unused;
    made_at_exit = lc_make(0, 0, 0);
    return py.new_int(made_at_exit != NULL);
}

static struct { /* a PyMethodDef */
    const char *name;
    void *(*function)(void *, void *);
    int flags;
    const char *doc;
} make_method = {"make_at_exit", make_at_exit, 4 /* METH_NOARGS */, NULL};

/* A tracer that is made when Python's own exit handlers run already: it is refused, or it works;
 * and the next interpreter is none the worse for it. */
void run_start_at_exit(void)
{
    enum { ROUNDS = 3 };
    static const char register_handler[] =
        "import atexit, gc\n"
        "def tick(): pass\n"
        "class Late:\n"
        "    def __del__(self, tick=tick): tick()\n"
        "late = Late()\n"
        "@atexit.register\n"
        "def at_exit():\n"
        "    print('made' if make_at_exit() else 'refused', flush=True)\n"
        "    for i in range(10): tick()\n";
    for (int i = 0; i < ROUNDS; i++) {
        lc_tracer *before;
        py.initialize(0);
        CHECK(py.set_attribute(py.add_module("__main__"), make_method.name,
                               py.new_function(&make_method, NULL, NULL)) == 0,
              "the function");
        CHECK(py.run(register_handler) == 0, "the program"); /* its handler runs after ours */
        before = make_with_gc();
        CHECK(py.run(program) == 0, "the program");
        CHECK(py.finalize() == 0, "Py_FinalizeEx");
        CHECK(lc_stop(before) == KPT_OK, "stop");
        check_ticks(before, 1000);
        CHECK(lc_destroy(before) == KPT_OK, "destroy");
        if (made_at_exit) {
            lc_result result;
            CHECK(lc_stop(made_at_exit) == KPT_OK, "stop");
            CHECK(lc_deliver(made_at_exit, &result) == KPT_OK && !result.broken, "%s", result.why);
            CHECK(result.ticks >= 10, "%llu ticks", (unsigned long long)result.ticks);
            CHECK(lc_destroy(made_at_exit) == KPT_OK, "destroy");
            made_at_exit = NULL;
        }
    }
}

/* The main interpreter is traced while another one runs on the same thread; stop, from a thread
 * that has no GIL, although PyGILState_Check says yes to all from the first sub-interpreter on. */
void run_sub_interpreter(void)
{
    lc_tracer *tracer;
    void *main_state, *other;
    lc_cycler *cycler;
    py.initialize(0);
    tracer = make_with_gc();
    CHECK(py.run(program) == 0, "the program");
    main_state = py.swap(NULL);
    (void)py.swap(main_state);
    other = py.new_interpreter();
    CHECK(other, "Py_NewInterpreter");
    CHECK(py.run(program) == 0, "in the other one");
    py.end_interpreter(other);
    (void)py.swap(main_state);
    CHECK(py.run(program) == 0, "the program");
    main_state = py.save();
    cycler = lc_cycler_start(50, 500);
    for (int i = 0; i < 50; i++) {
        int gil = py.ensure();
        CHECK(py.run("for i in range(2000): tick()") == 0, "ticks");
        py.release(gil);
    }
    CHECK(cycler && lc_cycler_wait(cycler, 60000), "it hangs");
    CHECK(!lc_cycler_why(cycler)[0], "%s", lc_cycler_why(cycler));
    CHECK(lc_stop(tracer) == KPT_OK, "stop");
    check_ticks(tracer, 102000);
    CHECK(lc_destroy(tracer) == KPT_OK, "destroy");
    py.restore(main_state);
    CHECK(py.run("tick()") == 0, "a callback, to remove the hooks");
    CHECK(py.finalize() == 0, "Py_FinalizeEx");
}
