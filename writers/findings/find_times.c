/* find_times.c: the findings about time: garbage collections, functions that became slower, gaps of a GPU, and what the
 * recording lacks. */
#include "writers/findings/findings_state.h"
#include "writers/gpu/gpu_summary.h"

enum { MAX_ROWS = 3 };

/* --- what is missing ---------------------------------------------------------------------------- */

static void put_missing(kpti_finding_list *list, uint64_t count, const char *text)
{
    if (!count) return;
    kpti_finding_begin(list, "missing", "The recording is not whole");
    kpti_text_put_count(list->out, count);
    kpti_text_put(list->out, text);
    kpti_finding_evidence(list);
    kpti_found_put_member(list->out, "count", count);
    kpti_finding_end(list, NULL, 0);
}

kpt_status kpti_find_missing(kpti_finding_list *list, const kpti_findings_rest *rest)
{
    const kpt_stats *const stats = rest->stats;
    if (stats) {
        put_missing(list, stats->events_dropped,
                    " events were dropped, so calls are missing, and what is said here is of the "
                    "others.");
        put_missing(list, stats->threads_unreached,
                    " threads could not be attached, so their calls are missing.");
        put_missing(list, stats->functions_disabled,
                    " functions were switched off by the overhead guard: their time is that of "
                    "their callers.");
    }
    if (rest->gpu) {
        put_missing(list, rest->gpu->counts.dropped, " events of GPUs were dropped.");
        put_missing(list, rest->gpu->counts.lost_kernels,
                    " kernels of GPUs were taken by another tool.");
    }
    return KPT_OK;
}

/* --- collections -------------------------------------------------------------------------------- */

/* Returns the calls of gc.collect, for recordings without collections. */
static kpti_collections explicit_collections(const kpti_findings *f)
{
    kpti_collections sum = {0};
    for (uint32_t i = 0; i < f->function_capacity; i++) {
        const kpti_found_function *const function = &f->functions[i];
        if (function->kind != KPTI_CLASS_COLLECT || !function->calls) continue;
        sum.count += function->calls;
        sum.total_ns += function->own_ns;
        if (function->longest.ns >= sum.longest.ns) sum.longest = function->longest;
    }
    return sum;
}

kpt_status kpti_find_collections(kpti_finding_list *list)
{
    const kpti_findings *const f = list->of;
    kpti_text_builder *const out = list->out;
    const int recorded = f->collections.count != 0;
    const kpti_collections c = recorded ? f->collections : explicit_collections(f);
    const uint64_t permille = kpti_permille(c.total_ns, kpti_found_run_ns(f));
    const int is_long =
        c.longest.ns >= KPTI_MAX_COLLECTION_NS &&
        kpti_permille(c.longest.ns, kpti_found_run_ns(f)) >= KPTI_MIN_PAUSE_PERMILLE;
    if (!is_long && (c.total_ns < KPTI_MIN_COLLECTIONS_NS || permille < KPTI_MIN_GC_PERMILLE))
        return KPT_OK;
    kpti_finding_begin(list, "gc", "Garbage collection");
    kpti_text_put_count(out, c.count);
    kpti_text_put(out, recorded ? " garbage collections took "
                                : " calls of gc.collect (a built-in function collect) took ");
    kpti_text_put_ns(out, c.total_ns);
    kpti_text_put(out, ", ");
    kpti_text_put_percent(out, permille);
    kpti_text_put(out, " of the run; the longest");
    if (recorded) {
        kpti_text_put(out, ", of generation ");
        kpti_text_put_u64(out, c.generation);
        kpti_text_put(out, ",");
    }
    kpti_text_put(out, " took ");
    kpti_text_put_ns(out, c.longest.ns);
    kpti_text_put(out, recorded ? "." : ". Other collections are recorded with --gc only.");
    kpti_finding_evidence(list);
    kpti_found_put_member(out, "count", c.count);
    kpti_text_put(out, ",");
    kpti_found_put_member(out, "total_ns", c.total_ns);
    kpti_text_put(out, ",");
    kpti_found_put_member(out, "longest_ns", c.longest.ns);
    kpti_text_put(out, ",");
    kpti_found_put_member(out, "permille_of_run", permille);
    kpti_finding_end(list, &c.longest, 1);
    return KPT_OK;
}

/* --- slower functions --------------------------------------------------------------------------- */

typedef struct slower_function {
    uint32_t name;
    uint64_t excess_ns; /* by which its last third took longer than at the first third's median */
    kpti_slower times;
} slower_function;

static void put_slower(kpti_finding_list *list, const slower_function *found)
{
    kpti_text_builder *const out = list->out;
    const kpti_found_function *const function = &list->of->functions[found->name];
    kpti_place place = function->longest;
    place.at_ns = found->times.last_at_ns;
    place.ns = found->times.last_ns;
    kpti_finding_begin(list, "slower", "A function became slower over the run");
    kpti_found_put_function(out, list->of, found->name);
    kpti_text_put(out, " was called ");
    kpti_text_put_count(out, function->calls);
    kpti_text_put(out, " times. A call took ");
    kpti_text_put_ns(out, found->times.first_ns);
    kpti_text_put(out, " in the first third of them and ");
    kpti_text_put_ns(out, found->times.last_ns);
    kpti_text_put(out, " in the last (medians, without the Python functions that it calls): ");
    kpti_text_put_ns(out, found->excess_ns);
    kpti_text_put(out, " more in the last third than at the first pace.");
    kpti_finding_evidence(list);
    kpti_found_put_function_member(out, "function", list->of, found->name);
    kpti_text_put(out, ",");
    kpti_found_put_member(out, "calls", function->calls);
    kpti_text_put(out, ",");
    kpti_found_put_member(out, "first_median_ns", found->times.first_ns);
    kpti_text_put(out, ",");
    kpti_found_put_member(out, "last_median_ns", found->times.last_ns);
    kpti_text_put(out, ",");
    kpti_found_put_member(out, "excess_ns", found->excess_ns);
    kpti_finding_end(list, &place, 1);
}

/* Puts FOUND in its place among the COUNT rows that have most, which are sorted. */
static void insert(slower_function *rows, uint32_t *count, const slower_function *found)
{
    uint32_t at = *count;
    if (at == MAX_ROWS && rows[at - 1].excess_ns >= found->excess_ns) return;
    if (at == MAX_ROWS) at--;
    *count = at + 1;
    for (; at && rows[at - 1].excess_ns < found->excess_ns; at--)
        rows[at] = rows[at - 1];
    rows[at] = *found;
}

kpt_status kpti_find_slower(kpti_finding_list *list)
{
    const kpti_findings *const f = list->of;
    slower_function rows[MAX_ROWS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < f->function_capacity; i++) {
        kpti_found_function *const function = &f->functions[i];
        slower_function found = {.name = i};
        if (function->with_c_ns < KPTI_MIN_SLOWER_NS || kpti_class_is_library(function->kind))
            continue;
        if (!kpti_slowdown_judge(&function->sample, &found.times)) continue;
        found.excess_ns = (found.times.last_ns - found.times.first_ns) * (function->calls / 3);
        if (found.excess_ns >= KPTI_MIN_SLOWER_NS &&
            kpti_permille(found.excess_ns, kpti_found_run_ns(f)) >= KPTI_MIN_SLOWER_PERMILLE)
            insert(rows, &count, &found);
    }
    for (uint32_t i = 0; i < count; i++)
        put_slower(list, &rows[i]);
    return KPT_OK;
}

/* --- GPUs --------------------------------------------------------------------------------------- */

static void put_launcher(kpti_text_builder *out, const kpti_gpu_log *log, const kpti_gpu_gap *gap)
{
    const kpti_gpu_node *const frame = kpti_gpu_own_frame(log, gap->stack);
    if (gap->is_backward) {
        kpti_text_put(out, ", launched by autograd for ");
        if (gap->forward.size)
            kpti_text_put_escaped(out, gap->forward);
        else
            kpti_text_put(out, "an operator that is not in the recording");
    } else if (frame) {
        kpti_text_put(out, ", launched by ");
        kpti_text_put_escaped(out, kpti_gpu_text(log, frame->file));
        kpti_text_put(out, ":");
        kpti_text_put_u64(out, frame->line);
        kpti_text_put(out, " ");
        kpti_text_put_escaped(out, kpti_gpu_text(log, frame->function));
    }
}

static void put_gap(kpti_finding_list *list, const kpti_gpu_log *log, const kpti_gpu_busy *device,
                    const kpti_gpu_gap *gap)
{
    const kpt_gpu_device *const known = kpti_gpu_device_of(log, device->device);
    const uint64_t span_ns = kpti_gpu_ns(device->first_ns, device->last_ns);
    const kpti_place place = {.at_ns = gap->start_ns,
                              .ns = kpti_gpu_ns(gap->start_ns, gap->end_ns),
                              .thread = known ? known->name : (kpt_str){"", 0}};
    kpti_text_builder *const out = list->out;
    kpti_finding_begin(list, "gpu_gap", "A GPU had nothing to do");
    kpti_text_put(out, "GPU ");
    kpti_text_put_u64(out, device->device);
    kpti_text_put(out, " was idle for ");
    kpti_text_put_ns(out, place.ns);
    kpti_text_put(out, ", ");
    kpti_text_put_percent(out, kpti_permille(place.ns, span_ns));
    kpti_text_put(out, " of the time from its first to its last work, until ");
    kpti_text_put_escaped(out, kpti_gpu_text(log, gap->text));
    put_launcher(out, log, gap);
    kpti_text_put(out, ".");
    kpti_finding_evidence(list);
    kpti_found_put_member(out, "device", device->device);
    kpti_text_put(out, ",");
    kpti_found_put_member(out, "ns", place.ns);
    kpti_text_put(out, ",");
    kpti_found_put_member(out, "busy_ns", device->busy_ns);
    kpti_text_put(out, ",");
    kpti_found_put_member(out, "span_ns", span_ns);
    kpti_finding_end(list, &place, 1);
}

kpt_status kpti_find_gpu_gaps(kpti_finding_list *list, const kpti_findings_rest *rest)
{
    kpti_gpu_report sums = {.heap = list->of->heap};
    kpt_status status = KPT_OK;
    if (!rest->gpu || !rest->gpu->events) return KPT_OK;
    status = kpti_gpu_report_make(&sums, rest->gpu, rest->launches);
    for (uint32_t i = 0; status == KPT_OK && i < sums.device_count; i++) {
        const kpti_gpu_busy *const device = &sums.devices[i];
        const uint64_t span_ns = kpti_gpu_ns(device->first_ns, device->last_ns);
        for (uint32_t j = 0; j < device->gap_count && j < MAX_ROWS; j++) {
            const kpti_gpu_gap *const gap = &device->gaps[j];
            const uint64_t ns = kpti_gpu_ns(gap->start_ns, gap->end_ns);
            if (ns >= KPTI_MIN_GPU_GAP_NS && kpti_permille(ns, span_ns) >= KPTI_MIN_SHARE_PERMILLE)
                put_gap(list, rest->gpu, device, gap);
        }
    }
    kpti_gpu_report_free(&sums);
    return status;
}
