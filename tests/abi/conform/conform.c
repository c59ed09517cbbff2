#include "tests/abi/conform/conform.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <unistd.h>

__attribute__((noreturn)) static void end(conform *c, int result, const char *format, va_list args)
{
    (void)vfprintf(c->report, format, args);
    (void)fflush(c->report);
    _exit(result);
}

void conform_failed(conform *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    end(c, RULE_BROKEN, format, args);
}

void conform_unreached(conform *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    end(c, RULE_NOT_REACHED, format, args);
}

void conform_expect_status(conform *c, kpt_status wanted, kpt_status got, const char *what)
{
    EXPECT(c, got == wanted, "%s returned %s (%d), not %s", what, kpt_status_name(got), got,
           kpt_status_name(wanted));
}

void conform_load(conform *c)
{
    const char *why;
    c->entry = mock_open_plugin(c->path, &why);
    if (!c->entry) conform_unreached(c, "the plugin can't be opened: %s", why);
    mock_host_init(&c->host, "kpt_conform");
    KPT_INIT(&c->info);
}

void conform_enter(conform *c)
{
    kpt_status status;
    if (!c->entry) conform_load(c);
    status = c->entry(&c->host.table, &c->info);
    if (status != KPT_OK) conform_unreached(c, "the entry returned %s", kpt_status_name(status));
    if (!c->host.make_tracer) conform_unreached(c, "no tracer factory was registered");
}

kpt_status conform_try_make(conform *c, const kpt_tracer_args *args, kpt_tracer *out)
{
    return c->host.make_tracer(c->host.tracer_ctx, args, out);
}

void conform_make(conform *c, kpt_tracer *tracer)
{
    kpt_tracer_args args;
    kpt_status status;
    if (!c->host.make_tracer) conform_enter(c);
    KPT_INIT(&args);
    KPT_INIT(tracer);
    status = conform_try_make(c, &args, tracer);
    if (status != KPT_OK || !tracer->ops || !tracer->self ||
        tracer->ops->struct_size < KPT_TRACER_OPS_V1_SIZE)
        conform_unreached(c, "no tracer was made: %s", kpt_status_name(status));
}

void conform_record(conform *c, kpt_tracer *tracer)
{
    kpt_status status;
    conform_make(c, tracer);
    (void)tracer->ops->register_gc_callback(tracer->self);
    conform_workload(c);
    status = tracer->ops->stop(tracer->self);
    if (status != KPT_OK) conform_unreached(c, "stop returned %s", kpt_status_name(status));
}

void conform_make_memory(conform *c, kpt_memory_tracer *memory)
{
    kpt_memory_args args;
    kpt_status status;
    if (!c->host.make_tracer) conform_enter(c);
    if (!c->host.make_memory) conform_unreached(c, "the plugin has no memory tracer");
    KPT_INIT(&args);
    KPT_INIT(memory);
    status = c->host.make_memory(c->host.memory_ctx, &args, memory);
    if (status != KPT_OK || !memory->ops || !memory->self)
        conform_unreached(c, "no memory tracer was made: %s", kpt_status_name(status));
}

void conform_make_observer(conform *c, kpt_observer *observer)
{
    kpt_observer_args args;
    kpt_status status;
    if (!c->host.make_tracer) conform_enter(c);
    if (!c->host.make_observer) conform_unreached(c, "the plugin has no observer");
    KPT_INIT(&args);
    KPT_INIT(observer);
    status = c->host.make_observer(c->host.observer_ctx, &args, observer);
    if (status != KPT_OK || !observer->ops || !observer->self)
        conform_unreached(c, "no observer was made: %s", kpt_status_name(status));
}

/* Calls of every kind, several threads, exceptions, generators; a few hundred activities. */
static const char workload[] = "import threading\n"
                               "def leaf(n): return len(str(n))\n"
                               "def numbers(n):\n"
                               "    for i in range(n): yield leaf(i)\n"
                               "def fails(n):\n"
                               "    if n: return fails(n - 1)\n"
                               "    raise ValueError(n)\n"
                               "def work():\n"
                               "    total = sum(numbers(20)) + max(map(leaf, range(10)))\n"
                               "    try: fails(5)\n"
                               "    except ValueError: pass\n"
                               "    return sorted(range(total), key=lambda x: -x)\n"
                               "threads = [threading.Thread(target=work) for _ in range(3)]\n"
                               "for t in threads: t.start()\n"
                               "work()\n"
                               "for t in threads: t.join()\n";

void conform_workload(conform *c)
{
    conform_python(c, workload);
}

void *conform_python_symbol(conform *c, const char *name)
{
    void *python = dlopen(c->libpython, RTLD_NOW | RTLD_NOLOAD);
    void *symbol = python ? dlsym(python, name) : NULL;
    if (!symbol) conform_unreached(c, "the library is not a libpython: it has no %s", name);
    return symbol;
}

void conform_python(conform *c, const char *program)
{
    int (*run)(const char *, void *) = NULL;
    int (*ensure)(void) = NULL;
    void (*release)(int) = NULL;
    int gil;
    int failed;
    if (!c->libpython) return;
    *(void **)&run = conform_python_symbol(c, "PyRun_SimpleStringFlags");
    *(void **)&ensure = conform_python_symbol(c, "PyGILState_Ensure");
    *(void **)&release = conform_python_symbol(c, "PyGILState_Release");
    gil = ensure();
    failed = run(program, NULL);
    release(gil);
    if (failed) conform_unreached(c, "a program could not be run");
}

/* The function that call() of a Python program calls. */
static struct {
    void (*call)(void *ctx);
    void *ctx;
    void *(*new_int)(long);
} pending;

static void *call_pending(void *self, void *args)
{
    (void)self;
    (void)args;
    pending.call(pending.ctx);
    return pending.new_int(0);
}

/* Adds the function call() to __main__, as a PyMethodDef, whose layout is part of Python's stable ABI. */
static void add_call(conform *c)
{
    enum { NO_ARGUMENTS = 4 }; /* METH_NOARGS */
    static struct {
        const char *name;
        void *(*function)(void *, void *);
        int flags;
        const char *text;
    } method = {"call", call_pending, NO_ARGUMENTS, NULL};
    int (*ensure)(void) = NULL;
    void (*release)(int) = NULL;
    void *(*new_function)(void *, void *, void *) = NULL;
    void *(*module)(const char *) = NULL;
    int (*set)(void *, const char *, void *) = NULL;
    int gil;
    int failed;
    *(void **)&ensure = conform_python_symbol(c, "PyGILState_Ensure");
    *(void **)&release = conform_python_symbol(c, "PyGILState_Release");
    *(void **)&new_function = conform_python_symbol(c, "PyCFunction_NewEx");
    *(void **)&module = conform_python_symbol(c, "PyImport_AddModule");
    *(void **)&set = conform_python_symbol(c, "PyObject_SetAttrString");
    *(void **)&pending.new_int = conform_python_symbol(c, "PyLong_FromLong");
    gil = ensure();
    failed = set(module("__main__"), method.name, new_function(&method, NULL, NULL));
    release(gil);
    if (failed) conform_unreached(c, "a function could not be passed to a program");
}

void conform_in_python(conform *c, const char *program, void (*call)(void *ctx), void *ctx)
{
    pending.call = call;
    pending.ctx = ctx;
    if (c->libpython) {
        add_call(c);
        conform_python(c, program);
    } else {
        call(ctx);
    }
}

void conform_without_gil(conform *c, void (*call)(void *ctx), void *ctx)
{
    void *(*save)(void) = NULL;
    void (*restore)(void *) = NULL;
    void *state = NULL;
    if (c->libpython) {
        *(void **)&save = conform_python_symbol(c, "PyEval_SaveThread");
        *(void **)&restore = conform_python_symbol(c, "PyEval_RestoreThread");
        state = save();
    }
    call(ctx);
    if (restore) restore(state);
}

void *conform_sized(const void *source, uint32_t size, uint32_t claimed, uint32_t bytes)
{
    unsigned char *memory = mock_guarded(bytes);
    memset(memory, 0xA5, bytes);
    memcpy(memory, source, size < bytes ? size : bytes);
    memcpy(memory, &claimed, sizeof claimed < bytes ? sizeof claimed : bytes);
    return memory;
}

int conform_filled(const void *memory, int value, size_t bytes)
{
    const unsigned char *at = memory;
    for (size_t i = 0; i < bytes; i++)
        if (at[i] != (unsigned char)value) return 0;
    return 1;
}

void conform_fresh_path(conform *c, char *path, size_t size)
{
    char folder[] = "/tmp/kpt_conform_XXXXXX";
    if (!mkdtemp(folder)) conform_unreached(c, "no temporary folder");
    (void)snprintf(path, size, "%s/output.json", folder);
}

void conform_remove_path(char *path)
{
    (void)unlink(path);
    *strrchr(path, '/') = 0;
    (void)rmdir(path);
}

int conform_has_text(const char *path, const char *text)
{
    static char content[65536];
    FILE *file = fopen(path, "r");
    size_t size = file ? fread(content, 1, sizeof content - 1, file) : 0;
    if (file) (void)fclose(file);
    content[size] = 0;
    return strstr(content, text) != NULL;
}
