#include "hosts/torch/exporter/native_trace.h"

#include <stdio.h>

#include "hosts/torch/exporter/native_writer.h"
#include "hosts/torch/exporter/torch_names.h"
#include "writers/chrome/chrome_operators.h"
#include "writers/writer.h"

static kpt_status fail(kpti_export_result *result, kpt_status status, const char *text)
{
    (void)snprintf(result->text, sizeof result->text, "%s", text);
    return status;
}

static kpt_status write_file(const kpti_native_profile *profile, const char *target, uint32_t flags,
                             kpti_operator_walk *walk, const kpti_native_found *found,
                             kpti_export_result *result)
{
    const kpti_writer_options options = {.base_ns = profile->base_ns,
                                         .trace_name = profile->name,
                                         .gzip = (flags & KPTI_EXPORT_GZIP) != 0,
                                         .interrupted = profile->interrupted,
                                         .interrupted_ctx = profile->interrupted_ctx,
                                         .gpu = profile->gpu,
                                         .operators = walk};
    kpti_writer *writer;
    kpti_writer_result written;
    kpt_status status = kpti_writer_open(&kpti_format_native, target, &options, &writer, &written);
    if (status == KPT_OK) {
        status = kpti_native_writer_begin(writer, profile, found);
        if (status == KPT_OK)
            status = kpti_torch_deliver(profile->recording, KPT_ORDER_START,
                                        KPT_DELIVER_RANGES | KPT_DELIVER_INPUTS, kpti_writer_batch,
                                        writer);
        status = kpti_writer_close(writer, status, NULL, &written);
        result->calls = written.activities;
    }
    if (status == KPT_OK) return KPT_OK;
    result->os_error = written.os_error;
    result->of_target = 1;
    return written.os_error ? status : fail(result, status, written.text);
}

/* --- before the file ---------------------------------------------------------------------------- */

/* The numbers of autograd's nodes, from a delivery in which calls come before their callers. */
typedef struct numbering {
    kpti_engine_nodes *nodes;
    kpti_chrome_node last;
} numbering;

static kpt_status take_nodes(void *ctx, const kpt_batch *batch)
{
    numbering *const n = ctx;
    kpt_status status = KPT_OK;
    for (uint32_t i = 0; i < batch->activity_count && status == KPT_OK; i++) {
        const kpt_activity *const a = kpti_record(batch->activities, batch->activity_stride, i);
        kpt_activity numbered;
        if (a->kind != KPT_KIND_OPERATOR) continue;
        numbered = *a;
        kpti_chrome_node_take(&n->last, &numbered);
        if (numbered.value0 != a->value0) status = kpti_engine_nodes_add(n->nodes, &numbered);
    }
    return status;
}

static kpt_status find_nodes(const kpti_torch_recording *recording, kpti_engine_nodes *nodes)
{
    numbering n = {nodes, {0, 0, 0}};
    const kpt_status status = kpti_torch_deliver(recording, KPT_ORDER_THREAD, 0, take_nodes, &n);
    kpti_engine_nodes_sort(nodes);
    return status;
}

/* Finds the operators around launches. Takes some time, so it is left out without a GPU. */
static kpt_status walk_launches(const kpti_native_profile *profile, kpti_operator_walk *walk)
{
    kpt_status status = KPT_OK;
    if (!profile->gpu) return KPT_OK;
    status = kpti_operator_walk_add_gpu(walk, profile->gpu);
    if (status != KPT_OK) return status;
    return kpti_torch_deliver(profile->recording, KPT_ORDER_TIME, KPT_DELIVER_RANGES,
                              kpti_operator_walk_batch, walk);
}

kpt_status kpti_native_write(const kpti_native_profile *profile, const char *target, uint32_t flags,
                             kpti_export_result *result)
{
    static const kpti_heap heap = {NULL, NULL, NULL};
    kpti_operator_walk walk;
    kpti_engine_nodes nodes = {.heap = heap};
    kpti_kernel_stacks stacks;
    const kpti_native_found found = {&nodes, &stacks};
    kpt_status status;
    memset(result, 0, sizeof *result);
    memset(&stacks, 0, sizeof stacks);
    kpti_operator_walk_init(&walk, &heap, NULL, NULL);
    status = find_nodes(profile->recording, &nodes);
    if (status == KPT_OK) status = walk_launches(profile, &walk);
    if (status == KPT_OK && profile->gpu && flags & KPTI_EXPORT_STACKS)
        kpti_kernel_stacks_find_in_log(&stacks, profile->recording, profile->gpu);
    if (status == KPT_OK)
        status = write_file(profile, target, flags, &walk, &found, result);
    else
        (void)fail(result, status, "the recording can't be read");
    kpti_kernel_stacks_free(&stacks);
    kpti_engine_nodes_free(&nodes);
    kpti_operator_walk_free(&walk);
    return status;
}
