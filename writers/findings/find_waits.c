/* find_waits.c: the findings about threads: waits at locks, threads that never ran, tasks that blocked their loop. */
#include "writers/findings/findings_state.h"

/* So many rows of one kind of finding are listed, the largest. */
enum { MAX_ROWS = 3 };

/* Whether the waits took a share of the run, and of the time that their threads lived. */
static int took_much(const kpti_findings *f, const kpti_wait_row *row)
{
    return row->total_ns >= KPTI_MIN_LOCK_NS &&
           kpti_permille(row->total_ns, kpti_found_run_ns(f)) >= KPTI_MIN_SHARE_PERMILLE &&
           kpti_permille(row->total_ns, row->lives_ns) >= KPTI_MIN_SHARE_PERMILLE;
}

/* --- locks ------------------------------------------------------------------------------------- */

static void put_lock(kpti_finding_list *list, const kpti_wait_row *row)
{
    kpti_text_builder *const out = list->out;
    const uint64_t permille = kpti_permille(row->total_ns, row->lives_ns);
    kpti_finding_begin(list, "lock", "Waits at a lock");
    kpti_text_put_count(out, row->threads);
    kpti_text_put(out, " threads waited ");
    kpti_text_put_ns(out, row->total_ns);
    kpti_text_put(out, " together, ");
    kpti_text_put_percent(out, permille);
    kpti_text_put(out, " of their time, in ");
    kpti_text_put_count(out, row->count);
    kpti_text_put(out, row->count == 1 ? " call of " : " calls of ");
    kpti_found_put_function(out, list->of, row->in);
    kpti_text_put(out, ", called by ");
    kpti_found_put_function(out, list->of, row->by);
    kpti_text_put(out, "; the longest wait took ");
    kpti_text_put_ns(out, row->longest.ns);
    kpti_text_put(out, ". Waits of `with lock:` are not recorded and not in these times.");
    kpti_finding_evidence(list);
    kpti_found_put_member(out, "threads", row->threads);
    kpti_text_put(out, ",");
    kpti_found_put_member(out, "count", row->count);
    kpti_text_put(out, ",");
    kpti_found_put_member(out, "total_ns", row->total_ns);
    kpti_text_put(out, ",");
    kpti_found_put_member(out, "longest_ns", row->longest.ns);
    kpti_text_put(out, ",");
    kpti_found_put_member(out, "permille_of_their_time", permille);
    kpti_text_put(out, ",");
    kpti_found_put_function_member(out, "in", list->of, row->in);
    kpti_text_put(out, ",");
    kpti_found_put_function_member(out, "by", list->of, row->by);
    kpti_finding_end(list, &row->longest, 1);
}

kpt_status kpti_find_locks(kpti_finding_list *list)
{
    const kpti_findings *const f = list->of;
    uint32_t rows = 0;
    for (uint32_t i = 0; i < f->waits.row_count && rows < MAX_ROWS; i++) {
        const kpti_wait_row *const row = &f->waits.rows[i];
        if (row->kind != KPTI_CLASS_LOCK || row->threads < 2 || !took_much(f, row)) continue;
        put_lock(list, row);
        rows++;
    }
    return KPT_OK;
}

/* --- threads that never ran --------------------------------------------------------------------- */

kpt_status kpti_find_idle_threads(kpti_finding_list *list)
{
    const kpti_findings *const f = list->of;
    kpti_text_builder *const out = list->out;
    for (uint32_t i = 0; i < f->waits.row_count; i++) {
        const kpti_wait_row *const row = &f->waits.rows[i];
        if (row->idle_threads < 2) continue; /* one timer, or one monitor, is no fault */
        kpti_finding_begin(list, "idle_threads", "Threads that never ran");
        kpti_text_put_count(out, row->idle_threads);
        kpti_text_put(out, " of the ");
        kpti_text_put_count(out, row->threads);
        kpti_text_put(out, " threads that waited in ");
        kpti_found_put_function(out, f, row->in);
        if (row->by != row->in) {
            kpti_text_put(out, ", called by ");
            kpti_found_put_function(out, f, row->by);
        }
        kpti_text_put(out, ", did nothing else: each waited once, from its start to its end, the "
                           "longest for ");
        kpti_text_put_ns(out, row->idle.ns);
        kpti_text_put(out, ".");
        kpti_finding_evidence(list);
        kpti_found_put_member(out, "idle_threads", row->idle_threads);
        kpti_text_put(out, ",");
        kpti_found_put_member(out, "threads", row->threads);
        kpti_text_put(out, ",");
        kpti_found_put_member(out, "longest_ns", row->idle.ns);
        kpti_text_put(out, ",");
        kpti_found_put_function_member(out, "in", f, row->in);
        kpti_text_put(out, ",");
        kpti_found_put_function_member(out, "by", f, row->by);
        kpti_finding_end(list, &row->idle, 1);
    }
    return KPT_OK;
}

/* --- tasks ------------------------------------------------------------------------------------- */

static void put_blocker(kpti_finding_list *list, const kpti_blocker *row)
{
    kpti_text_builder *const out = list->out;
    kpti_finding_begin(list, "blocked_loop", "A task blocked its event loop");
    kpti_text_put(out, "The task ");
    kpti_text_put_escaped(out, row->task->name);
    kpti_text_put(out, " (coroutine ");
    kpti_text_put_escaped(out, row->task->args);
    kpti_text_put(out, ") ran for ");
    kpti_text_put_ns(out, row->longest.ns);
    kpti_text_put(out, " without giving way to other tasks, most of it in ");
    kpti_found_put_function(out, list->of, row->heaviest);
    if (row->count > 1) {
        kpti_text_put(out, "; tasks of this coroutine did so for more than 100 ms ");
        kpti_text_put_count(out, row->count);
        kpti_text_put(out, " times, ");
        kpti_text_put_ns(out, row->total_ns);
        kpti_text_put(out, " together");
    }
    kpti_text_put(out, ".");
    kpti_finding_evidence(list);
    kpti_found_put_member(out, "count", row->count);
    kpti_text_put(out, ",");
    kpti_found_put_member(out, "total_ns", row->total_ns);
    kpti_text_put(out, ",");
    kpti_found_put_member(out, "longest_ns", row->longest.ns);
    kpti_text_put(out, ",\"task\":\"");
    kpti_text_put_escaped(out, row->task->name);
    kpti_text_put(out, "\",\"coroutine\":\"");
    kpti_text_put_escaped(out, row->task->args);
    kpti_text_put(out, "\",");
    kpti_found_put_function_member(out, "in", list->of, row->heaviest);
    kpti_finding_end(list, &row->longest, 1);
}

kpt_status kpti_find_blockers(kpti_finding_list *list)
{
    const kpti_findings *const f = list->of;
    uint64_t below_ns = UINT64_MAX;
    for (uint32_t listed = 0; listed < MAX_ROWS; listed++) {
        const kpti_blocker *most = NULL;
        for (uint32_t i = 0; i < f->blocker_count; i++) {
            const kpti_blocker *const row = &f->blockers[i];
            if (row->longest.ns < below_ns && (!most || row->longest.ns > most->longest.ns))
                most = row;
        }
        if (!most) break;
        put_blocker(list, most);
        below_ns = most->longest.ns;
    }
    return KPT_OK;
}
