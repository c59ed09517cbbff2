#include "hosts/standalone/session/session_queries.h"

#include <stdlib.h>

#include "core/base/batch_records.h"
#include "hosts/standalone/session/recording_source.h"
#include "hosts/standalone/session/session_entry.h"
#include "writers/findings/findings.h"

kpt_status kpti_session_count_batch(void *ctx, const kpt_batch *batch)
{
    kpti_session_count *count = ctx;
    for (uint32_t i = 0; i < batch->activity_count; i++) {
        const kpt_activity *a = kpti_record(batch->activities, batch->activity_stride, i);
        count->calls += a->kind != KPT_KIND_POINT;
    }
    count->names += batch->name_count;
    count->threads += batch->thread_count;
    return KPT_OK;
}

static kpt_status deliver(kpti_session *s, const kpti_session_watch *watch, kpti_extent extent,
                          kpt_batch_fn sink, void *sink_ctx, kpti_session_error *error)
{
    kpti_source from;
    kpt_status status = kpti_session_enter(s, error);
    if (status != KPT_OK) return status;
    status = kpti_source_begin(s, watch, &from, error);
    if (status == KPT_OK) {
        if (extent == KPTI_CALLS_ONLY || from.may_have_operators)
            status = kpti_source_deliver(&from, KPT_ORDER_THREAD, extent, sink, sink_ctx, error);
        kpti_source_end(&from);
    }
    return kpti_session_leave(s, status);
}

kpt_status kpti_session_deliver(kpti_session *s, const kpti_session_watch *watch, kpt_batch_fn sink,
                                void *sink_ctx, kpti_session_error *error)
{
    return deliver(s, watch, KPTI_CALLS_ONLY, sink, sink_ctx, error);
}

kpt_status kpti_session_deliver_ranges(kpti_session *s, const kpti_session_watch *watch,
                                       kpt_batch_fn sink, void *sink_ctx, kpti_session_error *error)
{
    return deliver(s, watch, KPTI_WITH_RANGES, sink, sink_ctx, error);
}

kpt_status kpti_session_count_calls(kpti_session *s, kpti_session_count *count,
                                    kpti_session_error *error)
{
    memset(count, 0, sizeof *count);
    return kpti_session_deliver(s, NULL, kpti_session_count_batch, count, error);
}

/* The context of a profile's sink. */
typedef struct profiling {
    kpt_batch_fn sink;
    void *profile;
    const kpti_session_watch *watch;
    uint64_t calls;
} profiling;

static kpt_status profile_batch(void *ctx, const kpt_batch *batch)
{
    profiling *p = ctx;
    p->calls += batch->activity_count;
    if (p->watch->progress) p->watch->progress(p->watch->progress_ctx, p->calls);
    return p->sink(p->profile, batch);
}

kpt_status kpti_session_profile(kpti_session *s, const kpti_session_watch *watch,
                                kpti_profile *profile, kpti_session_error *error)
{
    profiling p = {kpti_profile_batch, profile, watch, 0};
    return kpti_session_deliver(s, watch, profile_batch, &p, error);
}

kpt_status kpti_session_tasks(kpti_session *s, const kpti_session_watch *watch,
                              kpti_task_profile *profile, kpti_session_task_fn each, void *each_ctx,
                              kpti_session_error *error)
{
    profiling p = {kpti_task_profile_batch, profile, watch, 0};
    const kpti_task_row *rows;
    uint32_t count;
    kpti_source from;
    kpt_status status = kpti_session_enter(s, error);
    if (status != KPT_OK) return status;
    status = kpti_source_begin(s, watch, &from, error);
    if (status == KPT_OK) {
        kpti_task_profile_notes(profile, from.notes);
        status =
            kpti_source_deliver(&from, KPT_ORDER_THREAD, KPTI_CALLS_ONLY, profile_batch, &p, error);
        rows = kpti_task_profile_rows(profile, &count);
        for (uint32_t i = 0; status == KPT_OK && i < count; i++)
            if (rows[i].task) each(each_ctx, &rows[i], kpti_notes_get(from.notes, rows[i].task));
        kpti_source_end(&from);
    }
    return kpti_session_leave(s, status);
}

kpt_status kpti_session_operators(kpti_session *s, const kpti_session_watch *watch,
                                  kpti_operator_table *table, kpti_session_error *error)
{
    profiling p = {kpti_operator_table_batch, table, watch, 0};
    kpti_source from;
    kpt_status status = kpti_session_enter(s, error);
    if (status != KPT_OK) return status;
    status = kpti_source_begin(s, watch, &from, error);
    if (status == KPT_OK) {
        status = kpti_operator_table_add_gpu(table, from.gpu);
        if (status != KPT_OK) (void)kpti_session_fail(error, status, "no memory for the table");
        if (status == KPT_OK)
            status = kpti_source_deliver(&from, KPT_ORDER_TIME, KPTI_WITH_RANGES, profile_batch, &p,
                                         error);
        kpti_source_end(&from);
    }
    return kpti_session_leave(s, status);
}

kpt_status kpti_session_edges(kpti_session *s, const kpti_session_watch *watch,
                              kpti_call_edges *edges, kpti_session_error *error)
{
    profiling p = {kpti_call_edges_batch, edges, watch, 0};
    kpti_source from;
    kpt_status status = kpti_session_enter(s, error);
    if (status != KPT_OK) return status;
    status = kpti_source_begin(s, watch, &from, error);
    if (status == KPT_OK) {
        status =
            kpti_source_deliver(&from, KPT_ORDER_TIME, KPTI_CALLS_ONLY, profile_batch, &p, error);
        kpti_source_end(&from);
    }
    return kpti_session_leave(s, status);
}

kpt_status kpti_session_steps(kpti_session *s, const kpti_session_watch *watch,
                              kpti_step_finder *finder, kpti_session_error *error)
{
    static const kpti_heap heap = {NULL, NULL, NULL};
    profiling p = {kpti_step_finder_batch, finder, watch, 0};
    kpti_source from;
    kpt_status status = kpti_session_enter(s, error);
    kpti_step_finder_init(finder, &heap, NULL);
    if (status != KPT_OK) return status;
    status = kpti_source_begin(s, watch, &from, error);
    if (status == KPT_OK) {
        finder->notes = from.notes;
        if (from.may_have_operators || from.notes->count)
            status = kpti_source_deliver(&from, KPT_ORDER_TIME, KPTI_WITH_RANGES, profile_batch, &p,
                                         error);
        kpti_source_end(&from);
    }
    return kpti_session_leave(s, status);
}

/* --- GPUs ------------------------------------------------------------------------------------- */

uint32_t kpti_session_recorded_gpu(const kpti_session *session)
{
    return session->gpu.tracer.ops ? session->gpu.recorded : 0;
}

const char *kpti_session_gpu_reason(const kpti_session *session)
{
    return session->gpu.reason[0] ? session->gpu.reason : NULL;
}

const kpti_gpu_log *kpti_session_gpu(const kpti_session *session)
{
    return &session->gpu.log;
}

kpt_status kpti_session_with_gpu(kpti_session *s, kpti_session_gpu_fn use, void *ctx,
                                 kpti_session_error *error)
{
    kpti_operator_walk walk;
    kpti_source from;
    kpt_status status = kpti_session_enter(s, error);
    if (status != KPT_OK) return status;
    status = kpti_source_begin(s, NULL, &from, error);
    if (status == KPT_OK) {
        status = kpti_source_walk(&from, &walk, error);
        if (status == KPT_OK) {
            status = use(ctx, from.gpu, &walk.launches);
            if (status != KPT_OK) (void)kpti_session_fail(error, status, "no memory for the table");
        }
        kpti_operator_walk_free(&walk);
        kpti_source_end(&from);
    }
    return kpti_session_leave(s, status);
}

kpt_status kpti_session_find(const kpti_source *from, kpti_operator_walk *walk,
                             const kpti_session_watch *watch, kpti_text_builder *out,
                             kpti_session_error *error)
{
    kpti_findings *findings;
    profiling p = {kpti_findings_batch, NULL, watch, 0};
    kpti_findings_rest rest = {NULL, from->gpu, &walk->launches};
    kpt_stats stats;
    kpt_status status = kpti_findings_open(&out->heap, from->notes, &findings);
    if (status == KPT_OK) {
        p.profile = findings;
        error->text[0] = 0;
        status =
            kpti_source_deliver(from, KPT_ORDER_THREAD, KPTI_CALLS_ONLY, profile_batch, &p, error);
    } else {
        return kpti_session_fail(error, status, "no memory to find what stands out");
    }
    KPT_INIT(&stats);
    if (from->tracer.ops->get_stats(from->tracer.self, &stats) == KPT_OK) rest.stats = &stats;
    if (status == KPT_OK) {
        status = kpti_findings_write(findings, &rest, out);
        if (status != KPT_OK)
            (void)kpti_session_fail(error, status, "no memory to find what stands out");
    }
    kpti_findings_free(findings);
    return status;
}

kpt_status kpti_session_explain(kpti_session *s, const kpti_session_watch *watch,
                                kpti_text_builder *out, kpti_session_error *error)
{
    kpti_operator_walk walk;
    kpti_source from;
    kpt_status status = kpti_session_enter(s, error);
    if (status != KPT_OK) return status;
    status = kpti_source_begin(s, watch, &from, error);
    if (status == KPT_OK) {
        status = kpti_source_walk(&from, &walk, error);
        if (status == KPT_OK) status = kpti_session_find(&from, &walk, watch, out, error);
        kpti_operator_walk_free(&walk);
        kpti_source_end(&from);
    }
    return kpti_session_leave(s, status);
}
