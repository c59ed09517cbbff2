/* sample_gpu.c: a simulated GPU: a few kernels, copies and calls at fixed times after the start, on the
 * thread that started it, with the stack that its tracebacks gathered then. KPT_SAMPLE_GPU in the
 * environment changes that: "busy" simulates another tool that uses CUPTI; a number N adds N launches of
 * one kernel, delivered over several collections. */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/plugins/sample.h"

enum { NOT_STARTED = 0 };
enum { BATCH = 64, STREAM = 7, SIDE_STREAM = 13, KERNEL_NS = 1000, LAUNCH_NS = 2000 };

typedef struct sample_gpu {
    sample_object object; /* its state is NOT_STARTED, or KPT_GPU_* */
    kpt_gpu_args args;
    kpt_tracebacks tracebacks;
    kpt_traceback python;
    uint64_t os_tid;
    int64_t start_ns;
    uint64_t more; /* launches */
    uint64_t done; /* extra launches that were delivered */
    int delivered; /* the script was delivered */
} sample_gpu;

static kpt_status enter(kpt_handle self, sample_gpu **out)
{
    sample_object *object;
    kpt_status status = sample_enter(self, SAMPLE_GPU, &object);
    *out = status == KPT_OK ? (sample_gpu *)object : NULL;
    return status;
}

/* The result of start and stop if they can't enter. */
static kpt_status cant_turn(kpt_status status)
{
    if (status == KPT_E_HANDLE && wrong("R767")) return KPT_OK;
    return status == KPT_E_BUSY && wrong("R765") ? KPT_OK : status;
}

static kpt_status start(kpt_handle self)
{
    const char *wanted = getenv("KPT_SAMPLE_GPU");
    struct timespec now;
    sample_gpu *g;
    kpt_status status = enter(self, &g);
    if (status != KPT_OK) return cant_turn(status);
    if (wanted && strcmp(wanted, "busy") == 0)
        return sample_leave(&g->object, sample_refuse(&g->object, KPT_E_BUSY,
                                                      "another tool, the sample's, has CUPTI"));
    if (g->object.state != NOT_STARTED && !wrong("R763"))
        return sample_leave(&g->object,
                            sample_refuse(&g->object, KPT_E_STATE, "start: it was started before"));
    (void)clock_gettime(CLOCK_REALTIME, &now);
    g->start_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
    g->os_tid = (uint64_t)syscall(SYS_gettid);
    g->more = wanted ? strtoull(wanted, NULL, 10) : 0;
    if (g->args.tracebacks)
        (void)g->tracebacks.ops->gather(g->tracebacks.self, KPT_GATHER_PYTHON, g->args.stack_depth,
                                        &g->python);
    g->object.state = KPT_GPU_RECORDING;
    return sample_leave(&g->object, KPT_OK);
}

static kpt_status stop(kpt_handle self)
{
    sample_gpu *g;
    kpt_status status = enter(self, &g);
    if (status != KPT_OK) return cant_turn(status);
    if (g->object.state != KPT_GPU_RECORDING && !wrong("R763"))
        return sample_leave(&g->object,
                            sample_refuse(&g->object, KPT_E_STATE, "stop: it does not record"));
    g->object.state = KPT_GPU_STOPPED;
    return sample_leave(&g->object, KPT_OK);
}

/* --- the simulated events ---------------------------------------------------------------------- */

static kpt_gpu_event event_of(const sample_gpu *g, uint32_t kind, const char *name, int64_t from,
                              int64_t to, uint64_t correlation)
{
    kpt_gpu_event e;
    memset(&e, 0, sizeof e);
    e.kind = (uint16_t)kind;
    e.device = e.context = e.stream = KPT_GPU_NONE;
    e.start_ns = g->start_ns + from;
    e.end_ns = g->start_ns + to;
    e.correlation = correlation;
    e.name = kpt_str_of(name);
    e.python = g->python;
    e.os_tid = g->os_tid;
    return e;
}

static kpt_gpu_event on_device(const sample_gpu *g, uint32_t kind, const char *name, int64_t from,
                               int64_t to, uint64_t correlation)
{
    kpt_gpu_event e = event_of(g, kind, name, from, to, correlation);
    e.device = 0;
    e.context = 1;
    e.stream = STREAM;
    return e;
}

static kpt_gpu_event kernel_of(const sample_gpu *g, const char *name, int64_t from, int64_t to,
                               uint64_t correlation)
{
    kpt_gpu_event e = on_device(g, KPT_GPU_KERNEL, name, from, to, correlation);
    e.grid[0] = 4;
    e.block[0] = 128;
    e.grid[1] = e.grid[2] = e.block[1] = e.block[2] = 1;
    e.registers = 32;
    e.shared_static_bytes = 1000;
    e.shared_dynamic_bytes = 24;
    return e;
}

static kpt_gpu_event call_of(const sample_gpu *g, uint32_t kind, const char *name, int64_t from,
                             uint64_t correlation)
{
    kpt_gpu_event e = event_of(g, kind, name, from, from + LAUNCH_NS, correlation);
    e.cbid = 211;
    return e;
}

/* Kernels precede their calls, as CUPTI may deliver them. */
static uint32_t play(const sample_gpu *g, kpt_gpu_event *e)
{
    static const char kernel[] = "void sample_kernel<float>(int, float*)";
    uint32_t n = 0;
    e[n++] = kernel_of(g, kernel, 4000, 14000, 1);
    e[n++] = call_of(g, KPT_GPU_RUNTIME, "cudaLaunchKernel", 1000, 1);
    e[n++] = kernel_of(g, kernel, 15000, 20000, 2);
    e[n++] = call_of(g, KPT_GPU_RUNTIME, "cudaLaunchKernel", 5000, 2);
    e[n++] = call_of(g, KPT_GPU_RUNTIME, "cudaMemcpyAsync", 20000, 3);
    e[n] = on_device(g, KPT_GPU_MEMCPY, "", 30000, 34000, 3);
    e[n].bytes = 4096;
    e[n].copy_kind = 1;
    e[n].source_kind = 1;
    e[n++].target_kind = 3;
    e[n++] = call_of(g, KPT_GPU_DRIVER, "cuLaunchKernel", 24000, 4);
    e[n] = kernel_of(g, "other_kernel", 31000, 41000, 4);
    e[n++].stream = SIDE_STREAM;
    e[n] = on_device(g, KPT_GPU_MEMSET, "", 45000, 46000, 5);
    e[n].bytes = 256;
    e[n++].target_kind = 3;
    e[n] = on_device(g, KPT_GPU_SYNC, "", 46000, 47000, 6);
    e[n++].sync_kind = 3;
    e[n++] = event_of(g, KPT_GPU_RANGE, "step", 0, 50000, 0);
    e[n++] = event_of(g, KPT_GPU_MARK, "here", 25000, 25000, 0);
    e[n++] = event_of(g, KPT_GPU_OVERHEAD, "Activity Buffer Request", 100, 200, 0);
    return n;
}

/* The next of the further launches, from 100 µs on. */
static uint32_t launch_more(sample_gpu *g, kpt_gpu_event *e)
{
    uint32_t n = 0;
    while (n + 2 <= BATCH && g->done < g->more) {
        const int64_t at = 100000 + (int64_t)g->done * 2 * LAUNCH_NS;
        e[n++] = call_of(g, KPT_GPU_RUNTIME, "cudaLaunchKernel", at, 100 + g->done);
        e[n++] =
            kernel_of(g, "small_kernel", at + LAUNCH_NS, at + LAUNCH_NS + KERNEL_NS, 100 + g->done);
        g->done++;
    }
    return n;
}

static kpt_status tell(sample_gpu *g, kpt_gpu_batch_fn sink, void *sink_ctx)
{
    static const kpt_gpu_device device = {
        0, 2, {"Sample GPU", 10}, UINT64_C(1) << 30, 9, 0, 32, 1024, 2048, 65536, 233472, 1000000};
    static const kpt_gpu_name name = {KPT_GPU_NAMES_STREAM, SIDE_STREAM, {"side", 4}};
    kpt_gpu_event events[BATCH];
    kpt_gpu_batch batch;
    kpt_status status;
    memset(&batch, 0, sizeof batch);
    batch.struct_size = sizeof batch;
    batch.event_stride = wrong("R764") ? 0 : (uint32_t)sizeof *events;
    batch.device_stride = sizeof device;
    batch.name_stride = sizeof name;
    batch.events = events;
    if (g->object.state == NOT_STARTED) return sink(sink_ctx, &batch);
    if (!g->delivered) {
        batch.devices = &device;
        batch.device_count = 1;
        batch.names = &name;
        batch.name_count = 1;
        batch.event_count = play(g, events);
        g->delivered = 1;
    } else {
        batch.event_count = launch_more(g, events);
    }
    do {
        status = sink(sink_ctx, &batch);
        batch.device_count = batch.name_count = 0;
    } while (status == KPT_OK && (batch.event_count = launch_more(g, events)));
    return status;
}

static kpt_status collect(kpt_handle self, kpt_gpu_batch_fn sink, void *sink_ctx)
{
    sample_gpu *g;
    kpt_status status = enter(self, &g);
    if (status != KPT_OK) return status;
    if (!sink)
        status = sample_refuse(&g->object, KPT_E_INVALID, "collect: there is no sink");
    else if ((status = tell(g, sink, sink_ctx)) != KPT_OK)
        (void)sample_refuse(&g->object, status, "collect: the sink refused");
    return sample_leave(&g->object, sink && wrong("R766") ? KPT_OK : status);
}

static kpt_status get_stats(kpt_handle self, kpt_gpu_stats *out)
{
    static const sample_layout layout = {sizeof(kpt_gpu_stats), KPT_GPU_STATS_V1_SIZE, NULL, NULL,
                                         NULL};
    kpt_gpu_stats stats;
    sample_gpu *g;
    kpt_status status = enter(self, &g);
    if (status != KPT_OK) return status;
    status = sample_check(out, &layout);
    if (status != KPT_OK)
        return sample_leave(
            &g->object,
            sample_refuse(&g->object, status, "get_stats: out is NULL, or below its V1 size"));
    KPT_INIT(&stats);
    stats.state = wrong("R768") ? KPT_GPU_RECORDING : g->object.state;
    stats.events = g->delivered ? 13 + 2 * g->done : 0;
    stats.dropped = 3;
    stats.lost_kernels = 2;
    sample_write(out, &layout, &stats);
    return sample_leave(&g->object, KPT_OK);
}

/* --- making it --------------------------------------------------------------------------------- */

static kpt_status destroy(kpt_handle self)
{
    sample_gpu *g;
    kpt_status status = enter(self, &g);
    if (status != KPT_OK) return status;
    if (g->args.tracebacks) (void)g->tracebacks.ops->release(g->tracebacks.self, &g->python, 1);
    (void)sample_leave(&g->object, KPT_OK);
    return sample_destroy(&sample_gpu_product, self);
}

static kpt_gpu_ops ops = {
    .struct_size = sizeof ops,
    .start = start,
    .stop = stop,
    .collect = collect,
    .get_stats = get_stats,
    .last_error = sample_last_error,
    .destroy = destroy,
};

__attribute__((constructor)) static void shorten(void)
{
    if (wrong("R761")) ops.struct_size = KPT_GPU_OPS_V1_SIZE - (uint32_t)sizeof(kpt_any_fn);
}

static int is_small(const kpt_tracebacks *tracebacks)
{
    return tracebacks->struct_size < KPT_TRACEBACKS_V1_SIZE || !tracebacks->ops ||
           tracebacks->ops->struct_size < KPT_TRACEBACKS_OPS_V1_SIZE;
}

static kpt_status check(sample_binding *binding, const void *args)
{
    const kpt_gpu_args *a = args;
    if ((a->flags || a->spare) && !wrong("R762"))
        return sample_refuse(&binding->object, KPT_E_UNSUPPORTED, "there are unknown flags");
    if (a->tracebacks && is_small(a->tracebacks) && !wrong("R769"))
        return sample_refuse(&binding->object, KPT_E_SIZE, "the tracebacks are too small");
    return KPT_OK;
}

static void begin(sample_object *object, const void *args)
{
    sample_gpu *g = (sample_gpu *)object;
    memcpy(&g->args, args, sizeof g->args);
    if (g->args.tracebacks) g->tracebacks = *g->args.tracebacks;
    object->state = NOT_STARTED;
}

const sample_class sample_gpu_product = {
    .kind = SAMPLE_GPU,
    .why = "",
    .args = {sizeof(kpt_gpu_args), KPT_GPU_ARGS_V1_SIZE, NULL, NULL, NULL},
    .out = {sizeof(kpt_gpu_tracer), KPT_GPU_TRACER_V1_SIZE, NULL, NULL, NULL},
    .ops = &ops,
    .ops_v1_size = KPT_GPU_OPS_V1_SIZE,
    .object_bytes = sizeof(sample_gpu),
    .check = check,
    .begin = begin,
};

static kpt_status make(kpt_handle plugin, const kpt_gpu_args *args, kpt_gpu_tracer *out)
{
    sample_object *binding = sample_use(plugin, SAMPLE_BOND);
    if (!binding) return KPT_E_HANDLE;
    sample_release(binding);
    return sample_make(&sample_gpu_product, (void *)(uintptr_t)plugin, args, out);
}

const kpt_gpu_maker sample_gpu_maker = {sizeof sample_gpu_maker, 0, make};
