#include "tests/mock/mock_host.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((format(printf, 2, 3))) static void note(mock_host *host, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&host->lock);
    if (host->call_count < MOCK_MAX_CALLS)
        (void)vsnprintf(host->calls[host->call_count], MOCK_CALL_TEXT, format, args);
    host->call_count++;
    pthread_mutex_unlock(&host->lock);
    va_end(args);
}

uint32_t mock_host_count(mock_host *host, const char *prefix)
{
    uint32_t found = 0;
    pthread_mutex_lock(&host->lock);
    for (uint32_t i = 0; i < host->call_count && i < MOCK_MAX_CALLS; i++)
        found += strncmp(host->calls[i], prefix, strlen(prefix)) == 0;
    pthread_mutex_unlock(&host->lock);
    return found;
}

static kpt_status register_tracer(void *ctx, kpt_tracer_make_fn make, void *make_ctx)
{
    mock_host *host = ctx;
    note(host, "register_tracer: %s", make ? "a factory" : "NULL");
    if (host->register_answer != KPT_OK) return host->register_answer;
    host->make_tracer = make;
    host->tracer_ctx = make_ctx;
    host->tracers_registered++;
    return KPT_OK;
}

static kpt_status register_memory_tracer(void *ctx, kpt_memory_make_fn make, void *make_ctx)
{
    mock_host *host = ctx;
    note(host, "register_memory_tracer: %s", make ? "a factory" : "NULL");
    host->make_memory = make;
    host->memory_ctx = make_ctx;
    return host->register_answer;
}

static kpt_status register_observer(void *ctx, kpt_observer_make_fn make, void *make_ctx)
{
    mock_host *host = ctx;
    note(host, "register_observer: %s", make ? "a factory" : "NULL");
    host->make_observer = make;
    host->observer_ctx = make_ctx;
    return host->register_answer;
}

static void log_message(void *ctx, uint32_t level, kpt_str text)
{
    note(ctx, "log: %u %.*s", level, (int)text.size, text.data);
}

/* Each block begins with the requested size, so that dealloc can be checked. */
enum { HEAD = 16 };

static void *alloc(void *ctx, uint64_t size)
{
    mock_host *host = ctx;
    unsigned char *block = NULL;
    pthread_mutex_lock(&host->lock);
    if (++host->alloc_calls != host->fail_alloc_at) block = malloc(HEAD + size);
    if (block) {
        memset(block, 0xA5, HEAD + size); /* not zero, since the plugin may not rely on zeroes */
        memcpy(block, &size, sizeof size);
        host->live_blocks++;
        host->live_bytes += size;
    }
    pthread_mutex_unlock(&host->lock);
    return block ? block + HEAD : NULL;
}

static void dealloc(void *ctx, void *memory, uint64_t size)
{
    mock_host *host = ctx;
    unsigned char *block = (unsigned char *)memory - HEAD;
    uint64_t asked;
    memcpy(&asked, block, sizeof asked);
    pthread_mutex_lock(&host->lock);
    if (asked != size) host->bad_frees++;
    host->live_blocks--;
    host->live_bytes -= asked;
    pthread_mutex_unlock(&host->lock);
    free(block);
}

static uint64_t now_ticks(void *ctx)
{
    mock_host *host = ctx;
    uint64_t now;
    pthread_mutex_lock(&host->lock);
    now = host->now_ticks += MOCK_TICKS_STEP;
    pthread_mutex_unlock(&host->lock);
    return now;
}

static uint64_t thread_attach(void *ctx, uint64_t os_tid)
{
    note(ctx, "thread_attach: %llu", (unsigned long long)os_tid);
    return os_tid + 1;
}

static uint64_t on_watched_call(void *ctx, uint64_t watch, void *self, uint64_t call_id)
{
    note(ctx, "on_watched_call: %llu %s %llu", (unsigned long long)watch, self ? "self" : "NULL",
         (unsigned long long)call_id);
    return watch * 100;
}

void mock_host_init(mock_host *host, const char *name)
{
    memset(host, 0, sizeof *host);
    pthread_mutex_init(&host->lock, NULL);
    host->now_ticks = 1000;
    KPT_INIT(&host->table);
    host->table.ctx = host;
    host->table.name = kpt_str_of(name);
    host->table.register_tracer = register_tracer;
    host->table.register_memory_tracer = register_memory_tracer;
    host->table.register_observer = register_observer;
    host->table.log = log_message;
    host->table.alloc = alloc;
    host->table.dealloc = dealloc;
    host->table.tick_source = KPT_TICKS_HOST;
    host->table.now_ticks = now_ticks;
    host->table.thread_attach = thread_attach;
    host->table.on_watched_call = on_watched_call;
}

kpt_plugin_entry_fn mock_open_plugin(const char *path, const char **why)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    kpt_plugin_entry_fn entry = NULL;
    if (library) *(void **)&entry = dlsym(library, KPT_PLUGIN_ENTRY_NAME);
    *why = entry ? "" : dlerror();
    return entry;
}

void *mock_guarded(size_t count)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t pages = (count + page - 1) / page + 1;
    char *memory =
        mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + (pages - 1) * page, page, PROT_NONE) != 0)
        abort();
    return memory + (pages - 1) * page - count;
}
