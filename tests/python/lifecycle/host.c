#include "tests/python/lifecycle/host.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/python/lifecycle/check.h"

struct lc_tracer {
    kpt_tracer made;
};

static kpt_plugin_info info;
static kpt_tracer_make_fn make;
static void *make_ctx;
static _Thread_local char why[256];

static _Atomic uint64_t allocs, fail_first, fail_last;
static _Atomic int64_t live_blocks;

static kpt_status register_tracer(void *ctx, kpt_tracer_make_fn fn, void *fn_ctx)
{
    (void)ctx;
    make = fn;
    make_ctx = fn_ctx;
    return KPT_OK;
}

static void *host_alloc(void *ctx, uint64_t size)
{
    uint64_t number = atomic_fetch_add(&allocs, 1) + 1;
    void *memory;
    (void)ctx;
    if (number >= atomic_load(&fail_first) && number <= atomic_load(&fail_last)) return NULL;
    memory = malloc(size);
    if (memory) atomic_fetch_add(&live_blocks, 1);
    return memory;
}

static void host_dealloc(void *ctx, void *memory, uint64_t size)
{
    (void)ctx;
    (void)size;
    atomic_fetch_sub(&live_blocks, 1);
    free(memory);
}

const char *lc_open(const char *plugin)
{
    static kpt_host host;
    kpt_plugin_entry_fn entry = NULL;
    void *library = dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
    if (!library) return dlerror();
    *(void **)&entry = dlsym(library, KPT_PLUGIN_ENTRY_NAME);
    if (!entry) return "the plugin has no entry";
    KPT_INIT(&host);
    KPT_INIT(&info);
    host.name = kpt_str_of("lifecycle");
    host.register_tracer = register_tracer;
    host.alloc = host_alloc;
    host.dealloc = host_dealloc;
    if (entry(&host, &info) != KPT_OK) return "the entry failed";
    return make ? NULL : "no tracer was registered";
}

const char *lc_make_tracebacks(kpt_tracebacks *out)
{
    kpt_traceback_maker maker;
    kpt_tracebacks_args args;
    KPT_INIT(&maker);
    KPT_INIT(&args);
    KPT_INIT(out);
    if (info.get_extension(info.self, kpt_str_of(KPT_EXT_TRACEBACK), &maker) != KPT_OK)
        return "the plugin has no tracebacks";
    if (maker.make(info.self, &args, out) != KPT_OK) return "no tracebacks were made";
    return out->flags & KPT_OBJECT_NOOP ? "a no-op was made" : NULL;
}

const char *lc_why(void)
{
    return why;
}

/* The tracer, if it was made; else why it was not. */
static lc_tracer *made_or_why(lc_tracer *tracer, kpt_status status)
{
    if (status != KPT_OK) {
        (void)info.last_error(info.self, why, sizeof why, NULL);
    } else if (tracer->made.flags & KPT_OBJECT_NOOP) {
        (void)tracer->made.ops->last_error(tracer->made.self, why, sizeof why, NULL);
        (void)tracer->made.ops->destroy(tracer->made.self);
        status = KPT_DECLINED;
    }
    if (status == KPT_OK) return tracer;
    if (!why[0]) (void)snprintf(why, sizeof why, "%s", kpt_status_name(status));
    free(tracer);
    return NULL;
}

static lc_tracer *new_tracer(void)
{
    lc_tracer *tracer = calloc(1, sizeof *tracer);
    why[0] = 0;
    if (tracer) KPT_INIT(&tracer->made);
    return tracer;
}

static lc_tracer *make_with(const kpt_tracer_args *args)
{
    lc_tracer *tracer = new_tracer();
    return tracer ? made_or_why(tracer, make(make_ctx, args, &tracer->made)) : NULL;
}

lc_tracer *lc_make(uint32_t flags, uint64_t max_bytes, uint64_t ring_bytes)
{
    kpt_tracer_args args;
    KPT_INIT(&args);
    args.flags = flags;
    args.max_bytes = max_bytes;
    args.ring_bytes = ring_bytes;
    return make_with(&args);
}

lc_tracer *lc_make_streaming(const kpt_chunk_sink *sink, uint64_t ring_bytes)
{
    kpt_tracer_args args;
    KPT_INIT(&args);
    args.ring_bytes = ring_bytes;
    args.chunk_sink = sink;
    return make_with(&args);
}

int lc_flush(lc_tracer *tracer)
{
    return tracer->made.ops->get_chunks(tracer->made.self, NULL);
}

uint64_t lc_events(lc_tracer *tracer)
{
    kpt_stats stats;
    KPT_INIT(&stats);
    return tracer->made.ops->get_stats(tracer->made.self, &stats) == KPT_OK ? stats.events : 0;
}

lc_tracer *lc_load(kpt_next_chunk_fn next, void *next_ctx)
{
    lc_tracer *tracer = new_tracer();
    kpt_loader loader;
    kpt_load_args args;
    kpt_status status;
    if (!tracer) return NULL;
    KPT_INIT(&loader);
    KPT_INIT(&args);
    args.next = next;
    args.next_ctx = next_ctx;
    status = info.get_extension(info.self, kpt_str_of(KPT_EXT_LOADER), &loader);
    if (status == KPT_OK) status = loader.load(info.self, &args, &tracer->made);
    return made_or_why(tracer, status);
}

int lc_stop(lc_tracer *tracer)
{
    return tracer->made.ops->stop(tracer->made.self);
}

int lc_restart(lc_tracer *tracer)
{
    int status = tracer->made.ops->restart(tracer->made.self);
    if (status != KPT_OK)
        (void)tracer->made.ops->last_error(tracer->made.self, why, sizeof why, NULL);
    return status;
}

int lc_register_gc(lc_tracer *tracer)
{
    return tracer->made.ops->register_gc_callback(tracer->made.self);
}

int lc_destroy(lc_tracer *tracer)
{
    int status = tracer->made.ops->destroy(tracer->made.self);
    free(tracer);
    return status;
}

int lc_state(lc_tracer *tracer)
{
    kpt_stats stats;
    KPT_INIT(&stats);
    if (tracer->made.ops->get_stats(tracer->made.self, &stats) != KPT_OK) return -1;
    return (int)stats.state;
}

static int deliver(lc_tracer *tracer, lc_result *out, int while_running)
{
    const kpt_tracer_ops *ops = tracer->made.ops;
    kpt_delivery delivery;
    kpt_stats stats;
    lc_check *check = lc_check_new(out);
    if (!check) return KPT_E_MEMORY;
    KPT_INIT(&delivery);
    KPT_INIT(&stats);
    delivery.order = KPT_ORDER_START;
    delivery.sink = lc_check_batch;
    delivery.sink_ctx = check;
    out->status = while_running ? ops->snapshot(tracer->made.self, &delivery)
                                : ops->get_events(tracer->made.self, &delivery);
    lc_check_free(check);
    (void)ops->get_stats(tracer->made.self, &stats);
    out->dropped = stats.events_dropped;
    out->repaired = stats.events_repaired;
    return out->status;
}

int lc_deliver(lc_tracer *tracer, lc_result *out)
{
    return deliver(tracer, out, 0);
}

int lc_snapshot(lc_tracer *tracer, lc_result *out)
{
    return deliver(tracer, out, 1);
}

static int64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

struct lc_stopper {
    pthread_t thread;
    lc_tracer *tracer;
    uint32_t delay_ms;
    int64_t took_ns;
    lc_result result;
};

static void *stopper_main(void *self)
{
    lc_stopper *stopper = self;
    int64_t began;
    lc_sleep_ms(stopper->delay_ms);
    began = now_ns();
    stopper->took_ns = -1;
    if (lc_stop(stopper->tracer) == KPT_OK &&
        lc_deliver(stopper->tracer, &stopper->result) == KPT_OK &&
        lc_destroy(stopper->tracer) == KPT_OK)
        stopper->took_ns = now_ns() - began;
    return NULL;
}

lc_stopper *lc_stopper_start(lc_tracer *tracer, uint32_t delay_ms)
{
    lc_stopper *stopper = calloc(1, sizeof *stopper);
    if (!stopper) return NULL;
    stopper->tracer = tracer;
    stopper->delay_ms = delay_ms;
    if (pthread_create(&stopper->thread, NULL, stopper_main, stopper) == 0) return stopper;
    free(stopper);
    return NULL;
}

int64_t lc_stopper_wait(lc_stopper *stopper, lc_result *out)
{
    int64_t took = pthread_join(stopper->thread, NULL) == 0 ? stopper->took_ns : -1;
    *out = stopper->result;
    free(stopper);
    return took;
}

static void sleep_us(uint32_t us)
{
    struct timespec t = {us / 1000000, (long)(us % 1000000) * 1000};
    (void)nanosleep(&t, NULL);
}

void lc_sleep_ms(uint32_t ms)
{
    sleep_us(ms * 1000);
}

struct lc_cycler {
    pthread_t thread;
    uint32_t cycles;
    uint32_t run_us;
    char why[256];
    atomic_int finished;
};

/* One tracer's life; 0 when something is wrong. */
static int cycle(lc_cycler *cycler)
{
    lc_result result;
    lc_tracer *tracer = lc_make(0, 0, 0);
    if (!tracer) {
        (void)snprintf(cycler->why, sizeof cycler->why, "make: %.200s", why);
        return 0;
    }
    sleep_us(cycler->run_us);
    if (lc_stop(tracer) != KPT_OK) (void)snprintf(cycler->why, sizeof cycler->why, "stop failed");
    if (lc_deliver(tracer, &result) != KPT_OK || result.broken)
        (void)snprintf(cycler->why, sizeof cycler->why, "deliver: %d %.160s", result.status,
                       result.why);
    if (lc_destroy(tracer) != KPT_OK)
        (void)snprintf(cycler->why, sizeof cycler->why, "destroy failed");
    return !cycler->why[0];
}

static void *cycler_main(void *self)
{
    lc_cycler *cycler = self;
    for (uint32_t i = 0; i < cycler->cycles && cycle(cycler); i++) {
    }
    atomic_store(&cycler->finished, 1);
    return NULL;
}

lc_cycler *lc_cycler_start(uint32_t cycles, uint32_t run_us)
{
    lc_cycler *cycler = calloc(1, sizeof *cycler);
    if (!cycler) return NULL;
    cycler->cycles = cycles;
    cycler->run_us = run_us;
    if (pthread_create(&cycler->thread, NULL, cycler_main, cycler) == 0) return cycler;
    free(cycler);
    return NULL;
}

int lc_cycler_wait(lc_cycler *cycler, uint32_t ms)
{
    enum { STEP_MS = 5 };
    for (uint32_t waited = 0; waited < ms; waited += STEP_MS) {
        if (atomic_load(&cycler->finished)) return pthread_join(cycler->thread, NULL) == 0;
        lc_sleep_ms(STEP_MS);
    }
    return 0;
}

const char *lc_cycler_why(const lc_cycler *cycler)
{
    return cycler->why;
}

void lc_fail_allocs(uint64_t first, uint64_t last)
{
    atomic_store(&fail_first, 0);
    atomic_store(&fail_last, 0);
    atomic_store(&allocs, 0);
    atomic_store(&fail_first, first);
    atomic_store(&fail_last, last);
}

uint64_t lc_allocs(void)
{
    return atomic_load(&allocs);
}

int64_t lc_live_blocks(void)
{
    return atomic_load(&live_blocks);
}
