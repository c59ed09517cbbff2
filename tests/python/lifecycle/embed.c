/* embed.c: kpt_embed PLUGIN LIBPYTHON SCENARIO: a C program that brings its own Python. */
#include "tests/python/lifecycle/embed.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

embed_python py;

void embed_failed(int line, const char *condition, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("FAILED: line %d: %s: ", line, condition);
    (void)vprintf(format, args);
    printf("\n");
    (void)fflush(stdout);
    va_end(args);
    _exit(1);
}

uint32_t embed_number(const char *variable, uint32_t otherwise)
{
    const char *text = getenv(variable);
    return text ? (uint32_t)strtoul(text, NULL, 10) : otherwise;
}

/* RTLD_GLOBAL, as Python's own extension modules need it. */
static void open_python(const char *path)
{
    const struct {
        const char *name;
        void *at;
    } rows[] = {
        {"Py_InitializeEx", &py.initialize},
        {"Py_FinalizeEx", &py.finalize},
        {"PyRun_SimpleString", &py.run},
        {"PyGILState_Ensure", &py.ensure},
        {"PyGILState_Release", &py.release},
        {"PyEval_SaveThread", &py.save},
        {"PyEval_RestoreThread", &py.restore},
        {"Py_NewInterpreter", &py.new_interpreter},
        {"Py_EndInterpreter", &py.end_interpreter},
        {"PyThreadState_Swap", &py.swap},
        {"PyImport_AddModule", &py.add_module},
        {"PyObject_SetAttrString", &py.set_attribute},
        {"PyCFunction_NewEx", &py.new_function},
        {"PyLong_FromLong", &py.new_int},
    };
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        printf("CANNOT: %s\n", dlerror());
        _exit(77);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *found = dlsym(library, rows[i].name);
        CHECK(found, "%s is not in %s", rows[i].name, path);
        memcpy(rows[i].at, &found, sizeof found);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} scenarios[] = {
    {"finalize", run_finalize},
    {"daemons", run_daemons},
    {"restart_in_next", run_restart_in_next},
    {"start_at_exit", run_start_at_exit},
    {"sub_interpreter", run_sub_interpreter},
    {"stress", run_stress},
    {"snapshots", run_snapshots},
    {"flush", run_flush},
    {"flush_behind", run_flush_behind},
    {"stream", run_stream},
    {"tracebacks", run_tracebacks},
};

int main(int argc, char **argv)
{
    const char *error;
    if (argc != 4) {
        (void)fprintf(stderr, "usage: %s PLUGIN LIBPYTHON SCENARIO\n", argv[0]);
        return 2;
    }
    open_python(argv[2]);
    error = lc_open(argv[1]);
    CHECK(!error, "%s", error);
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        if (strcmp(scenarios[i].name, argv[3]) != 0) continue;
        scenarios[i].run();
        (void)fflush(stdout);
        return 0;
    }
    (void)fprintf(stderr, "%s: no scenario %s\n", argv[0], argv[3]);
    return 2;
}
