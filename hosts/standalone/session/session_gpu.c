#include "hosts/standalone/session/session_gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "abi/kpt_text.h"
#include "hosts/standalone/session/shared_tracebacks.h"

/* The maximum size of the events in memory, some 30 million; that of a flight recorder is two million. Streamed
 * events do not stay in memory. */
static const uint64_t most_bytes = UINT64_C(1) << 30;
static const uint64_t most_ring_bytes = UINT64_C(1) << 26;

/* --- beginning -------------------------------------------------------------------------------- */

static void make_tracebacks(kpti_gpu *gpu, const kpt_plugin_info *info)
{
    kpt_traceback_maker maker;
    kpt_tracebacks_args args;
    KPT_INIT(&maker);
    KPT_INIT(&args);
    KPT_INIT(&gpu->tracebacks);
    if (info->get_extension(info->self, kpt_str_of(KPT_EXT_TRACEBACK), &maker) != KPT_OK ||
        maker.make(info->self, &args, &gpu->tracebacks) != KPT_OK)
        gpu->tracebacks.ops = NULL;
}

static void say_why(kpti_gpu *gpu, kpt_status status, kpt_last_error_fn last_error, kpt_handle self)
{
    gpu->reason[0] = 0;
    if (last_error) (void)last_error(self, gpu->reason, sizeof gpu->reason, NULL);
    if (!gpu->reason[0])
        (void)snprintf(gpu->reason, sizeof gpu->reason, "the plugin returned %s",
                       kpt_status_name(status));
}

/* Returns KPT_OK if it records, or will record as soon as CUDA is used. */
static kpt_status make_tracer(kpti_gpu *gpu, const kpt_plugin_info *info, uint32_t wanted)
{
    kpt_gpu_maker maker;
    kpt_gpu_args args;
    kpt_status status;
    KPT_INIT(&maker);
    KPT_INIT(&args);
    KPT_INIT(&gpu->tracer);
    status = info->get_extension(info->self, kpt_str_of(KPT_EXT_GPU), &maker);
    if (status != KPT_OK) {
        (void)snprintf(gpu->reason, sizeof gpu->reason, "this plugin has no GPU tracer");
        return status;
    }
    args.tracebacks = gpu->tracebacks.ops ? &gpu->tracebacks : NULL;
    args.flags = wanted == KPTI_GPU_CALLS ? 0 : KPT_GPU_FEWER_CALLS;
    status = maker.make(info->self, &args, &gpu->tracer);
    if (status == KPT_E_UNSUPPORTED && args.flags) { /* a plugin before 1.2 */
        args.flags = 0;
        status = maker.make(info->self, &args, &gpu->tracer);
    }
    gpu->recorded = args.flags & KPT_GPU_FEWER_CALLS ? KPTI_GPU_ON : KPTI_GPU_CALLS;
    if (status != KPT_OK) {
        gpu->tracer.ops = NULL;
        say_why(gpu, status, info->last_error, info->self);
        return status;
    }
    status = gpu->tracer.flags & KPT_OBJECT_NOOP ? KPT_E_UNSUPPORTED
                                                 : gpu->tracer.ops->start(gpu->tracer.self);
    if (status != KPT_OK) say_why(gpu, status, gpu->tracer.ops->last_error, gpu->tracer.self);
    return status;
}

static void end_tracer(kpti_gpu *gpu)
{
    if (gpu->tracer.ops) (void)gpu->tracer.ops->destroy(gpu->tracer.self);
    if (gpu->tracebacks.ops) (void)gpu->tracebacks.ops->destroy(gpu->tracebacks.self);
    gpu->tracer.ops = NULL;
    gpu->tracebacks.ops = NULL;
}

/* Checks for device files only. Calling CUDA would take a second. */
static int is_there_one(void)
{
    const char *named = getenv("KPYTRACE_CUPTI");
    return access("/dev/nvidiactl", F_OK) == 0 || access("/proc/driver/nvidia", F_OK) == 0 ||
           access("/dev/dxg", F_OK) == 0 || (named && *named);
}

void kpti_gpu_start(kpti_gpu *gpu, const kpti_plugin_client *client, uint32_t wanted, int is_ring)
{
    static const kpti_heap heap = {NULL, NULL, NULL};
    if (wanted == KPTI_GPU_OFF || (wanted == KPTI_GPU_AUTO && !is_there_one())) return;
    kpti_gpu_log_init(&gpu->log, &heap);
    gpu->log.is_ring = is_ring;
    gpu->log.most_bytes = is_ring ? most_ring_bytes : most_bytes;
    make_tracebacks(gpu, &client->info);
    if (make_tracer(gpu, &client->info, wanted) != KPT_OK) end_tracer(gpu);
}

/* --- stacks ----------------------------------------------------------------------------------- */

/* The tracebacks of a batch that are new to the log. */
typedef struct newcomers {
    kpti_gpu *gpu;
    kpt_traceback *tracebacks;
    uint32_t capacity;
    uint32_t count;
} newcomers;

/* Returns the node of the frame SYMBOL that NODE called, or NODE if there is no memory. */
static uint32_t call_frame(kpti_gpu_log *log, const kpt_symbol *symbol, uint32_t node)
{
    kpti_gpu_node made = {node, 0, 0, symbol->line ? symbol->line : symbol->first_line};
    uint32_t number;
    const kpt_str name = symbol->qualname.size ? symbol->qualname : symbol->name;
    if (kpti_gpu_log_text(log, name, &made.function) != KPT_OK ||
        kpti_gpu_log_text(log, symbol->file, &made.file) != KPT_OK ||
        kpti_gpu_log_node(log, &made, &number) != KPT_OK)
        return node;
    return number;
}

static kpt_status take_symbols(void *ctx, const kpt_symbols *symbols)
{
    newcomers *n = ctx;
    if (!kpti_symbols_are_whole(symbols, n->count)) return KPT_E_SIZE;
    for (uint32_t i = 0; i < n->count; i++) {
        const kpt_symbol_span span = symbols->spans[i];
        uint32_t *known = kpti_u64_map_at(&n->gpu->stacks, n->tracebacks[i].python);
        uint32_t node = 0;
        for (uint64_t k = span.count; k > 0; k--)
            node = call_frame(&n->gpu->log,
                              kpti_symbol_at(symbols, symbols->frames[span.first + k - 1]), node);
        if (known) *known = node + 1;
    }
    return KPT_OK;
}

static const kpt_gpu_event *event_at(const kpt_gpu_batch *batch, uint64_t i)
{
    return (const kpt_gpu_event *)((const char *)batch->events + i * batch->event_stride);
}

/* Adds the stacks of a batch to the log. The numbers of tracebacks are valid until the tracer is destroyed. */
static void learn_stacks(kpti_gpu *gpu, const kpt_gpu_batch *batch)
{
    newcomers n = {gpu, NULL, 0, 0};
    if (!gpu->tracebacks.ops) return;
    for (uint64_t i = 0; i < batch->event_count; i++) {
        const kpt_traceback python = event_at(batch, i)->python;
        uint32_t *known = python.python ? kpti_u64_map_at(&gpu->stacks, python.python) : NULL;
        if (!known || *known) continue;
        if (kpti_array_reach(&gpu->log.heap, &n.tracebacks, &n.capacity, n.count,
                             sizeof *n.tracebacks) != KPT_OK)
            break;
        *known = 1; /* no stack, until it is symbolized */
        n.tracebacks[n.count++] = python;
    }
    if (n.count)
        (void)gpu->tracebacks.ops->symbolize(gpu->tracebacks.self, n.tracebacks, n.count,
                                             take_symbols, &n);
    kpti_heap_give(&gpu->log.heap, n.tracebacks, n.capacity * sizeof *n.tracebacks);
}

static uint32_t stack_of(kpti_gpu *gpu, const kpt_gpu_event *event)
{
    const uint32_t *known =
        event->python.python ? kpti_u64_map_at(&gpu->stacks, event->python.python) : NULL;
    return known && *known ? *known - 1 : 0;
}

/* --- collecting ------------------------------------------------------------------------------- */

static int can_read(const kpt_gpu_batch *b)
{
    return b && b->struct_size >= KPT_GPU_BATCH_V1_SIZE &&
           (!b->event_count || b->event_stride >= KPT_GPU_EVENT_V1_SIZE) &&
           (!b->device_count || b->device_stride >= KPT_GPU_DEVICE_V1_SIZE) &&
           (!b->name_count || b->name_stride >= KPT_GPU_NAME_V1_SIZE);
}

static kpt_status take_batch(void *ctx, const kpt_gpu_batch *batch)
{
    kpti_gpu *gpu = ctx;
    if (!can_read(batch)) return KPT_E_SIZE;
    for (uint32_t i = 0; i < batch->device_count; i++)
        (void)kpti_gpu_log_device(&gpu->log,
                                  (const kpt_gpu_device *)((const char *)batch->devices +
                                                           (size_t)i * batch->device_stride));
    for (uint32_t i = 0; i < batch->name_count; i++)
        (void)kpti_gpu_log_name(&gpu->log, (const kpt_gpu_name *)((const char *)batch->names +
                                                                  (size_t)i * batch->name_stride));
    learn_stacks(gpu, batch);
    for (uint64_t i = 0; i < batch->event_count; i++) {
        const kpt_gpu_event *event = event_at(batch, i);
        if (kpti_gpu_log_add(&gpu->log, event, stack_of(gpu, event)) != KPT_OK)
            gpu->log.counts.dropped++;
    }
    return KPT_OK;
}

void kpti_gpu_collect(kpti_gpu *gpu)
{
    if (gpu->tracer.ops && !gpu->stopped)
        (void)gpu->tracer.ops->collect(gpu->tracer.self, take_batch, gpu);
}

void kpti_gpu_stop(kpti_gpu *gpu)
{
    kpt_gpu_stats stats;
    kpt_status status;
    if (!gpu->tracer.ops || gpu->stopped) return;
    (void)gpu->tracer.ops->stop(gpu->tracer.self);
    status = gpu->tracer.ops->collect(gpu->tracer.self, take_batch, gpu);
    gpu->stopped = 1;
    KPT_INIT(&stats);
    if (gpu->tracer.ops->get_stats(gpu->tracer.self, &stats) == KPT_OK) {
        gpu->log.counts.dropped += stats.dropped;
        gpu->log.counts.lost_kernels = stats.lost_kernels;
    }
    /* CUDA may be initialised after the start, and the reason may be known only then. */
    if (status != KPT_OK || (!gpu->log.kernels && !stats.events))
        (void)gpu->tracer.ops->last_error(gpu->tracer.self, gpu->reason, sizeof gpu->reason, NULL);
}

void kpti_gpu_free(kpti_gpu *gpu)
{
    end_tracer(gpu);
    kpti_gpu_log_free(&gpu->log);
    kpti_u64_map_free(&gpu->stacks);
}
