/* correlate.c: see correlate.h. */
#include "gpu_tracer/correlation/correlate.h"

#include "core/base/assert.h"
#include "gpu_tracer/correlation/correlation_table.h"
#include "gpu_tracer/correlation/held_stacks.h"
#include "gpu_tracer/cupti/api_functions.h"

static void absorb_launch(kpti_gpu_session *s, const kpti_launch *launch)
{
    const int failed = (launch->flags & KPTI_LAUNCH_FAILED) != 0;
    kpti_gpu_known *row = failed ? kpti_known_find(&s->table, launch->correlation)
                                 : kpti_known_row(s, launch->correlation);
    if (!row) {
        if (failed || !launch->correlation) return;
        kpti_known_lose(s, 1, (uint64_t)kpti_launch_is_awaited(launch->flags));
        kpti_stacks_release(s, launch->python);
        return;
    }
    row->launch.os_tid = launch->os_tid;
    if (!failed) {
        /* A row of an earlier launch may have the same id. */
        if (!(row->launch.flags & KPTI_LAUNCH_HELD)) kpti_stacks_release(s, row->launch.python);
        row->launch.flags &= ~(uint32_t)KPTI_LAUNCH_HELD;
        row->launch.python = launch->python;
    }
    row->launch.flags |= launch->flags;
}

static void absorb_links(kpti_gpu_session *s)
{
    kpti_list *links = &s->ready.of[KPTI_GPU_LINKS];
    kpti_list_position at = {0};
    const kpti_gpu_link *link;
    while ((link = kpti_list_next(links, &at))) {
        kpti_gpu_known *row = kpti_known_row(s, link->correlation);
        if (row)
            row->external = link->external;
        else if (link->correlation)
            kpti_budget_drop(&s->budget, 1);
    }
    kpti_list_free(links, &s->budget);
}

/* Takes the calls that callbacks have recorded on thread T. */
static void absorb_calls(kpti_gpu_session *s, kpti_gpu_thread *t)
{
    const kpti_gpu_call *call;
    uint64_t taken = 0;
    while ((call = kpti_list_next(&t->calls, &t->calls_read))) {
        if (kpti_list_add(&s->ready.of[KPTI_GPU_CALLS], &s->budget, call))
            taken++;
        else
            kpti_budget_drop(&s->budget, 1);
        kpti_list_free_read(&t->calls, &t->calls_read, &s->budget);
    }
    atomic_fetch_add_explicit(&s->store.events, taken, memory_order_relaxed);
}

/* Takes the records and the calls first and the launches after them: a launch is in its list before its
 * kernel's record can arrive, and before its call ends. */
void kpti_join_absorb(kpti_gpu_session *s)
{
    const kpti_launch *launch;
    kpti_record_store_get(&s->store, &s->ready);
    s->table.turn++;
    for (kpti_gpu_thread *t = kpti_launches_threads(); t; t = t->next)
        absorb_calls(s, t);
    for (kpti_gpu_thread *t = kpti_launches_threads(); t; t = t->next)
        while ((launch = kpti_list_next(&t->list, &t->read))) {
            absorb_launch(s, launch);
            kpti_list_free_read(&t->list, &t->read, &s->budget);
        }
    kpti_known_lose(s, atomic_exchange(&s->unlisted, 0), atomic_exchange(&s->unlisted_kernels, 0));
    absorb_links(s);
    kpti_known_see(s);
}

/* Counts the stack of EVENT, which has no row, as lost if its row may have been dropped. The exception is
 * an event that began after the end of the recording, when calls were no longer seen, while no kernel is
 * awaited. */
static void miss(kpti_gpu_session *s, const kpt_gpu_event *event)
{
    kpti_gpu_table *table = &s->table;
    const int is_kernel = event->kind == KPT_GPU_KERNEL;
    const int is_awaited = is_kernel && table->awaited;
    if (!(is_kernel ? table->forgotten : table->early)) return;
    if (!is_awaited && s->stop_time && event->start_ns >= (int64_t)s->stop_time) return;
    kpti_budget_drop(&s->budget, 1);
    if (!is_awaited) return;
    kpti_assert(s->lost_kernels);
    table->awaited--; /* the kernel was late, not lost */
    s->lost_kernels--;
}

static kpt_traceback stack_of(kpti_gpu_session *s, kpti_gpu_known *row)
{
    if (kpti_stacks_hold(s, &row->launch)) return row->launch.python;
    kpti_budget_drop(&s->budget, 1);
    return (kpt_traceback){0};
}

/* A callback measures Unix time, CUPTI its own. */
static int64_t time_of_call(const kpti_gpu_session *s, uint64_t time)
{
    return s->fewer_calls ? (int64_t)time : kpti_unix_clock_of(&s->clock, time);
}

int kpti_join_call(kpti_gpu_session *s, const kpti_gpu_call *call, kpt_gpu_event *out)
{
    const int driver = call->kind == KPT_GPU_DRIVER;
    const kpti_call_row *function =
        kpti_call_of(driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API, call->cbid);
    kpti_gpu_known *row = kpti_known_find(&s->table, call->correlation);
    if (driver && row && row->launch.flags & KPTI_LAUNCH_RUNTIME) return 0;
    *out = (kpt_gpu_event){
        .kind = (uint16_t)call->kind,
        .device = KPT_GPU_NONE,
        .context = KPT_GPU_NONE,
        .stream = KPT_GPU_NONE,
        .start_ns = time_of_call(s, call->start),
        .end_ns = time_of_call(s, call->end),
        .correlation = call->correlation,
        .external = row ? row->external : 0,
        .os_tid = call->os_tid,
        .name = function->name,
        .value = call->result,
        .cbid = call->cbid,
    };
    if (row)
        out->python = stack_of(s, row);
    else if (function->wanted & KPTI_CALL_STACK)
        miss(s, out);
    return 1;
}

void kpti_join_event(kpti_gpu_session *s, kpt_gpu_event *event)
{
    kpti_gpu_known *row = kpti_known_find(&s->table, event->correlation);
    const int is_work = event->kind == KPT_GPU_KERNEL || event->kind == KPT_GPU_MEMCPY ||
                        event->kind == KPT_GPU_MEMSET;
    event->start_ns = kpti_unix_clock_of(&s->clock, (uint64_t)event->start_ns);
    event->end_ns = kpti_unix_clock_of(&s->clock, (uint64_t)event->end_ns);
    if (event->device == KPT_GPU_NONE && event->context < KPTI_MAX_CONTEXTS &&
        s->device_of[event->context])
        event->device = s->device_of[event->context] - 1;
    if (!row && is_work) miss(s, event);
    if (!row) return;
    event->external = row->external;
    event->python = stack_of(s, row);
    if (!event->os_tid) event->os_tid = row->launch.os_tid;
}
