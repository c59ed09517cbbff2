/* load.c: measures what it costs a program to load the plugin and make a no-op tracer. Every program that
 * ships the plugin pays this, with or without Python. Each round is its own process, since only the first
 * load in a process does the work. usage: kpt_bench_load PLUGIN EMPTY.so [LIBPYTHON] */
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/kpt.h"
#include "bench/native/bench.h"

enum { ROUNDS = 200 };

/* Nanoseconds of one round. */
typedef struct cost {
    double open_empty;
    double open;
    double entry;
    double make;
    double rest; /* stop, get_events, destroy, detach */
} cost;
enum { STEPS = sizeof(cost) / sizeof(double) };

static const char *const step_names[STEPS] = {"open_empty", "open", "entry", "make", "rest"};

typedef struct factory {
    kpt_tracer_make_fn make;
    void *make_ctx;
} factory;

static kpt_status register_tracer(void *ctx, kpt_tracer_make_fn make, void *make_ctx)
{
    *(factory *)ctx = (factory){make, make_ctx};
    return KPT_OK;
}

static kpt_status ignore(void *ctx, const kpt_batch *batch)
{
    (void)ctx;
    (void)batch;
    return KPT_OK;
}

static void *timed_open(const char *path, double *ns)
{
    double begin = now_ns(CLOCK_MONOTONIC);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    *ns = now_ns(CLOCK_MONOTONIC) - begin;
    must(library != NULL, path);
    return library;
}

static void start_python(const char *libpython)
{
    void (*initialize)(int) = NULL;
    void *python = dlopen(libpython, RTLD_NOW | RTLD_GLOBAL);
    must(python != NULL, libpython);
    *(void **)&initialize = dlsym(python, "Py_InitializeEx");
    must(initialize != NULL, "Py_InitializeEx");
    initialize(0);
}

static cost one_round(char **argv, const char *libpython)
{
    cost c;
    factory f = {NULL, NULL};
    kpt_host host;
    kpt_plugin_info info;
    kpt_tracer_args args;
    kpt_tracer tracer;
    kpt_delivery delivery;
    kpt_plugin_entry_fn entry;
    double begin;
    if (libpython) start_python(libpython);
    KPT_INIT(&host);
    KPT_INIT(&info);
    KPT_INIT(&args);
    KPT_INIT(&tracer);
    KPT_INIT(&delivery);
    delivery.sink = ignore;
    host.ctx = &f;
    host.register_tracer = register_tracer;

    (void)timed_open(argv[2], &c.open_empty);
    *(void **)&entry = dlsym(timed_open(argv[1], &c.open), KPT_PLUGIN_ENTRY_NAME);
    must(entry != NULL, KPT_PLUGIN_ENTRY_NAME);
    begin = now_ns(CLOCK_MONOTONIC);
    must(entry(&host, &info) == KPT_OK, "entry");
    c.entry = now_ns(CLOCK_MONOTONIC) - begin;
    begin = now_ns(CLOCK_MONOTONIC);
    must(f.make(f.make_ctx, &args, &tracer) == KPT_OK, "make");
    c.make = now_ns(CLOCK_MONOTONIC) - begin;
    begin = now_ns(CLOCK_MONOTONIC);
    must(tracer.ops->stop(tracer.self) == KPT_OK, "stop");
    must(tracer.ops->get_events(tracer.self, &delivery) == KPT_OK, "get_events");
    must(tracer.ops->destroy(tracer.self) == KPT_OK, "destroy");
    must(info.detach(info.self) == KPT_OK, "detach");
    c.rest = now_ns(CLOCK_MONOTONIC) - begin;
    return c;
}

/* A round in a child, which sends its figures through a pipe. */
static cost round_in_child(char **argv, const char *libpython)
{
    int ends[2];
    cost c;
    pid_t pid;
    must(pipe(ends) == 0, "pipe");
    pid = fork();
    must(pid >= 0, "fork");
    if (pid == 0) {
        c = one_round(argv, libpython);
        _exit(write(ends[1], &c, sizeof c) == (ssize_t)sizeof c ? 0 : 1);
    }
    (void)close(ends[1]);
    must(read(ends[0], &c, sizeof c) == (ssize_t)sizeof c, "a round");
    (void)close(ends[0]);
    (void)waitpid(pid, NULL, 0);
    return c;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    static double all[STEPS][ROUNDS];
    static double total[ROUNDS];
    const char *libpython = argc == 4 ? argv[3] : NULL;
    must(argc == 3 || argc == 4, "usage: kpt_bench_load PLUGIN EMPTY.so [LIBPYTHON]:");
    for (int i = 0; i < ROUNDS; i++) {
        cost c = round_in_child(argv, libpython);
        const double *steps = &c.open_empty;
        for (int k = 0; k < STEPS; k++)
            all[k][i] = steps[k];
        total[i] = c.open + c.entry + c.make;
    }
    qsort(total, ROUNDS, sizeof *total, by_size);
    printf("{\"python\": %s, \"rounds\": %d", libpython ? "true" : "false", ROUNDS);
    for (int k = 0; k < STEPS; k++) {
        qsort(all[k], ROUNDS, sizeof(double), by_size);
        printf(", \"%s_us\": {\"best\": %.1f, \"median\": %.1f}", step_names[k], all[k][0] / 1e3,
               all[k][ROUNDS / 2] / 1e3);
    }
    printf(", \"load_and_make_us\": {\"best\": %.1f, \"median\": %.1f, \"p99\": %.1f}}\n",
           total[0] / 1e3, total[ROUNDS / 2] / 1e3, total[ROUNDS - ROUNDS / 100] / 1e3);
    return EXIT_SUCCESS;
}
