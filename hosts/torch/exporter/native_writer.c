#include "hosts/torch/exporter/native_writer.h"

#include "hosts/torch/exporter/native_frame.h"
#include "hosts/torch/exporter/native_memory.h"
#include "hosts/torch/exporter/native_numbers.h"
#include "hosts/torch/exporter/torch_calls.h"
#include "writers/chrome/chrome_gpu.h"
#include "writers/chrome/chrome_operators.h"

static const kpti_fragment none = {NULL, 0, 0};

typedef struct native {
    kpti_writer base;
    const kpti_native_profile *profile;
    const kpti_native_found *found;
    kpti_chrome_events events;
    kpti_torch_calls *calls;
    kpti_native_numbers numbers;
    kpti_fragments inputs;  /* of operators, as JSON, by index */
    kpti_fragments threads; /* of operators; in the form that kpti_chrome_put needs */
    uint32_t *scopes;       /* by name */
    uint32_t scope_capacity;
    uint32_t *ranges; /* of the launches, by start; those before next are passed */
    uint32_t range_count;
    uint32_t next_range;
    uint64_t next_memory; /* the next report to be written */
    kpti_chrome_gpu gpu;
} native;

/* --- the ranges in which something was launched ------------------------------------------------- */

/* The ranges that qsort compares, of this thread. */
static _Thread_local const kpti_gpu_range *sorted;

static int by_start(const void *a, const void *b)
{
    const int64_t left = sorted[*(const uint32_t *)a].start_ns;
    const int64_t right = sorted[*(const uint32_t *)b].start_ns;
    return (left > right) - (left < right);
}

static kpt_status sort_ranges(native *n)
{
    const kpti_gpu_launches *const launches = &n->base.operators->launches;
    const uint32_t count = launches->range_count;
    if (!count) return KPT_OK;
    n->ranges = kpti_heap_take(&n->base.heap, count * sizeof *n->ranges);
    if (!n->ranges) return KPT_E_MEMORY;
    n->range_count = count;
    for (uint32_t i = 0; i < count; i++)
        n->ranges[i] = i;
    sorted = launches->ranges;
    qsort(n->ranges, count, sizeof *n->ranges, by_start);
    return KPT_OK;
}

/* Gives the number of the range A to that of the launches. Ranges are passed by start. */
static void number_range(native *n, const kpt_activity *a)
{
    kpti_gpu_range *const ranges = n->base.operators->launches.ranges;
    while (n->next_range < n->range_count &&
           ranges[n->ranges[n->next_range]].start_ns < a->start_ns)
        n->next_range++;
    for (uint32_t i = n->next_range; i < n->range_count; i++) {
        kpti_gpu_range *const range = &ranges[n->ranges[i]];
        if (range->start_ns != a->start_ns) return;
        if (range->thread == a->thread) range->external = a->id;
    }
}

/* --- activities --------------------------------------------------------------------------------- */

static kpt_status put_operator(native *n, kpt_activity *a)
{
    const kpt_status status =
        n->profile->gpu ? KPT_OK : kpti_operator_walk_begin(n->base.operators, a);
    kpti_chrome_operator texts = {
        .name = kpti_torch_calls_shown(n->calls, a->name),
        .thread = kpti_fragments_get(&n->threads, a->thread, kpti_chrome_no_thread),
        .external = a->id};
    texts.name.note = a->name < n->scope_capacity ? n->scopes[a->name] : 0;
    if (a->line) texts.inputs = kpti_fragments_get(&n->inputs, a->line, none);
    if (a->kind == KPT_KIND_OPERATOR) {
        kpti_engine_nodes_number(n->found->nodes, a);
        kpti_operator_walk_claim_inner(n->base.operators, a, a->id);
    } else {
        number_range(n, a);
    }
    kpti_chrome_put_operator(&n->events, NULL, a, texts);
    return status;
}

static void put_memory(native *n, int64_t before_ns)
{
    kpti_native_put_memory(n->profile->recording, n->base.pid, before_ns, &n->next_memory,
                           &n->events);
}

static kpt_status take_call(kpti_writer *writer, const kpt_activity *delivered)
{
    native *const n = (native *)writer;
    kpt_activity a = *delivered;
    const kpt_status status = kpti_native_number(&n->numbers, &a);
    if (status != KPT_OK) return status;
    put_memory(n, a.start_ns);
    if (!kpti_chrome_is_operator(&a)) return kpti_torch_calls_call(n->calls, &a);
    return put_operator(n, &a);
}

/* --- names and threads -------------------------------------------------------------------------- */

static kpt_status take_name(kpti_writer *writer, const kpt_name *name)
{
    native *const n = (native *)writer;
    kpt_status status;
    if (name->flags & KPT_NAME_INPUTS) return kpti_chrome_add_inputs(&n->inputs, name);
    if (name->scope) {
        status = kpti_array_reach(&n->base.heap, &n->scopes, &n->scope_capacity, name->index,
                                  sizeof *n->scopes);
        if (status != KPT_OK) return status;
        n->scopes[name->index] = name->scope;
    }
    return kpti_torch_calls_name(n->calls, name);
}

static kpt_status take_thread(kpti_writer *writer, const kpt_thread *thread)
{
    native *const n = (native *)writer;
    kpt_status status = kpti_torch_calls_thread(n->calls, thread);
    if (status == KPT_OK && !n->profile->gpu)
        status = kpti_operator_walk_thread(writer->operators, thread);
    if (status != KPT_OK) return status;
    kpti_native_put_thread(writer, n->profile, thread);
    return kpti_chrome_add_thread(&n->threads, thread->index, writer->pid, thread->os_tid);
}

/* --- the beginning and the end ------------------------------------------------------------------ */

static kpti_fragment launched(void *ctx, const kpt_gpu_event *event)
{
    return kpti_kernel_stacks_text(ctx, event->correlation);
}

static kpt_status begin(kpti_writer *writer, const kpti_writer_options *options)
{
    native *const n = (native *)writer;
    (void)options;
    n->numbers.heap = n->inputs.heap = n->threads.heap = writer->heap;
    n->events = (kpti_chrome_events){.out = &writer->out, .base_ns = writer->base_ns};
    kpti_chrome_gpu_init(&n->gpu, &writer->heap);
    n->gpu.launched = launched;
    return KPT_OK;
}

kpt_status kpti_native_writer_begin(kpti_writer *writer, const kpti_native_profile *profile,
                                    const kpti_native_found *found)
{
    native *const n = (native *)writer;
    kpt_status status;
    n->profile = profile;
    n->found = found;
    n->numbers.operators = profile->recording->numbers_before;
    n->gpu.launched_ctx = (void *)(uintptr_t)found->stacks;
    status = kpti_torch_calls_open(profile->recording, 0, &n->events, &n->calls);
    if (status == KPT_OK) status = sort_ranges(n);
    kpti_native_put_head(writer, profile);
    return status;
}

static kpt_status end(kpti_writer *writer, const kpt_stats *stats)
{
    native *const n = (native *)writer;
    kpt_status status;
    (void)stats;
    put_memory(n, INT64_MAX);
    if (!n->profile->recording->has_no_links) kpti_chrome_put_links(writer, &n->threads);
    status = kpti_chrome_gpu_events(&n->gpu, writer);
    kpti_native_put_tail(writer, n->profile);
    return status;
}

static void release(kpti_writer *writer)
{
    native *const n = (native *)writer;
    kpti_torch_calls_free(n->calls);
    kpti_native_numbers_free(&n->numbers);
    kpti_fragments_free(&n->inputs);
    kpti_fragments_free(&n->threads);
    kpti_heap_give(&writer->heap, n->scopes, n->scope_capacity * sizeof *n->scopes);
    kpti_heap_give(&writer->heap, n->ranges, n->range_count * sizeof *n->ranges);
    kpti_chrome_gpu_free(&n->gpu);
}

static const kpti_format_ops ops = {sizeof(native), begin, take_name, take_thread,
                                    take_call,      NULL,  end,       release,
                                    NULL,           NULL,  NULL,      NULL};

const kpti_format kpti_format_native = {"torch's trace", ".json", KPT_ORDER_START, &ops, 1, 1, 0};
