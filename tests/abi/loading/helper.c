/* helper.c: kpt_helper PLUGIN SCENARIO [LIBPYTHON global|local asleep|ready|finalised|again] runs one
 * scenario against the plugin, in a process without Python, or with a Python in the requested state.
 * kpt_load starts it and checks its output. */
#include "tests/abi/loading/helper.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *plugin_path;

void failed(const char *file, int line, const char *condition, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("FAILED: %s:%d: %s: ", file, line, condition);
    (void)vprintf(format, args);
    printf("\n");
    (void)fflush(stdout);
    va_end(args);
    _exit(1);
}

kpt_plugin_entry_fn open_plugin(void)
{
    const char *why;
    kpt_plugin_entry_fn entry = mock_open_plugin(plugin_path, &why);
    CHECK(entry, "%s", why);
    return entry;
}

bound *bind_host(const char *name)
{
    bound *b = calloc(1, sizeof *b);
    kpt_status status;
    CHECK(b, "no memory");
    mock_host_init(&b->host, name);
    KPT_INIT(&b->info);
    status = open_plugin()(&b->host.table, &b->info);
    CHECK(status == KPT_OK, "%s", kpt_status_name(status));
    CHECK(b->host.make_tracer && b->host.make_memory && b->host.make_observer, "not registered");
    return b;
}

void release(bound *b)
{
    kpt_status status = b->info.detach(b->info.self);
    CHECK(status == KPT_OK, "%s: %s", kpt_status_name(status),
          error_text(b->info.last_error, b->info.self));
    CHECK(b->host.live_blocks == 0, "%llu blocks left", (unsigned long long)b->host.live_blocks);
    CHECK(b->host.bad_frees == 0, "%llu wrong frees", (unsigned long long)b->host.bad_frees);
    free(b);
}

kpt_tracer make_tracer(bound *b)
{
    kpt_tracer_args args;
    kpt_tracer made;
    kpt_status status;
    KPT_INIT(&args);
    KPT_INIT(&made);
    status = b->host.make_tracer(b->host.tracer_ctx, &args, &made);
    CHECK(status == KPT_OK, "%s", error_text(b->info.last_error, b->info.self));
    return made;
}

kpt_memory_tracer make_memory(bound *b)
{
    kpt_memory_args args;
    kpt_memory_tracer made;
    kpt_status status;
    KPT_INIT(&args);
    KPT_INIT(&made);
    status = b->host.make_memory(b->host.memory_ctx, &args, &made);
    CHECK(status == KPT_OK, "%s", error_text(b->info.last_error, b->info.self));
    return made;
}

kpt_observer make_observer(bound *b)
{
    kpt_observer_args args;
    kpt_observer made;
    kpt_status status;
    KPT_INIT(&args);
    KPT_INIT(&made);
    status = b->host.make_observer(b->host.observer_ctx, &args, &made);
    CHECK(status == KPT_OK, "%s", error_text(b->info.last_error, b->info.self));
    return made;
}

kpt_tracebacks make_tracebacks(bound *b)
{
    kpt_traceback_maker maker;
    kpt_tracebacks_args args;
    kpt_tracebacks made;
    kpt_status status;
    KPT_INIT(&maker);
    KPT_INIT(&args);
    KPT_INIT(&made);
    if (b->info.abi_minor < 1) return made;
    status = b->info.get_extension(b->info.self, kpt_str_of(KPT_EXT_TRACEBACK), &maker);
    if (status == KPT_OK) status = maker.make(b->info.self, &args, &made);
    CHECK(status == KPT_OK, "%s", error_text(b->info.last_error, b->info.self));
    return made;
}

const char *error_text(kpt_last_error_fn last_error, kpt_handle self)
{
    static _Thread_local char text[512];
    kpt_status status = last_error(self, text, sizeof text, NULL);
    CHECK(status == KPT_OK, "%s", kpt_status_name(status));
    return text;
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"silent", run_silent},       {"report", run_report},
    {"two_hosts", run_two_hosts}, {"twice", run_twice},
    {"closed", run_closed},       {"fork", run_fork},
    {"threads", run_threads},     {"fork_threads", run_fork_threads},
    {"fork_load", run_fork_load}, {"failing_alloc", run_failing_alloc},
    {"states", run_states},       {"refusals", run_refusals},
};

/* Loads a CPython into the process, as a program does that selects it at run time. */
static void embed_python(const char *path, const char *visibility, const char *state)
{
    int mode = strcmp(visibility, "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL;
    void *library = dlopen(path, RTLD_NOW | mode);
    void (*initialize)(int) = NULL;
    int (*finalize)(void) = NULL;
    if (!library) {
        printf("CANNOT: %s\n", dlerror());
        _exit(77);
    }
    *(void **)&initialize = dlsym(library, "Py_InitializeEx");
    *(void **)&finalize = dlsym(library, "Py_FinalizeEx");
    CHECK(initialize && finalize, "%s is no libpython", path);
    if (strcmp(state, "asleep") != 0) initialize(0);
    if (strcmp(state, "finalised") == 0 || strcmp(state, "again") == 0)
        CHECK(finalize() == 0, "Py_FinalizeEx");
    if (strcmp(state, "again") == 0) initialize(0);
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 6) {
        (void)fprintf(stderr, "usage: %s PLUGIN SCENARIO [LIBPYTHON global|local STATE]\n",
                      argv[0]);
        return 2;
    }
    plugin_path = argv[1];
    if (argc == 6) embed_python(argv[3], argv[4], argv[5]);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        if (strcmp(scenarios[i].name, argv[2]) != 0) continue;
        scenarios[i].run();
        return 0;
    }
    (void)fprintf(stderr, "%s: no scenario %s\n", argv[0], argv[2]);
    return 2;
}
