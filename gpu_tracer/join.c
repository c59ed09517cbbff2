/* join.c: what was recorded in several places put together: a kernel with the call that started it, its
 * thread, its stack and the external correlation; a range's beginning with its end. */
#include "calls.h"
#include "session.h"

static uint64_t spread(uint32_t correlation)
{
    return (correlation * UINT64_C(0x9E3779B97F4A7C15)) >> 20;
}

static kpti_gpu_known *find(const kpti_gpu_table *table, uint32_t correlation)
{
    for (uint64_t i = spread(correlation);; i++) {
        kpti_gpu_known *row = &table->rows[i & (table->room - 1)];
        if (!row->launch.correlation || row->launch.correlation == correlation) return row;
    }
}

/* The row of CORRELATION; NULL where there is none. */
static kpti_gpu_known *look_up(const kpti_gpu_table *table, uint64_t correlation)
{
    kpti_gpu_known *row;
    if (!table->room || !correlation) return NULL;
    row = find(table, (uint32_t)correlation);
    return row->launch.correlation ? row : NULL;
}

static int grow(kpti_gpu_session *s)
{
    enum { FIRST_ROOM = 1024 };
    kpti_gpu_table bigger = s->table;
    bigger.room = s->table.room ? s->table.room * 2 : FIRST_ROOM;
    bigger.rows = kpti_budget_alloc(&s->budget, bigger.room * sizeof *bigger.rows);
    if (!bigger.rows) return 0;
    for (uint64_t i = 0; i < s->table.room; i++) {
        const kpti_gpu_known *row = &s->table.rows[i];
        if (row->launch.correlation) *find(&bigger, row->launch.correlation) = *row;
    }
    kpti_budget_free(&s->budget, s->table.rows, s->table.room * sizeof *s->table.rows);
    s->table = bigger;
    return 1;
}

/* The row, made if need be; NULL where there is no memory. */
static kpti_gpu_known *row_of(kpti_gpu_session *s, uint32_t correlation)
{
    kpti_gpu_known *row;
    if (!correlation) return NULL;
    if (s->table.count * 4 >= s->table.room * 3 && !grow(s)) {
        row = look_up(&s->table, correlation);
        return row;
    }
    row = find(&s->table, correlation);
    if (!row->launch.correlation) {
        row->launch.correlation = correlation;
        s->table.count++;
    }
    return row;
}

static void release(const kpti_gpu_session *s, kpt_traceback *traceback)
{
    if (s->tracebacks.ops && traceback->python)
        (void)s->tracebacks.ops->release(s->tracebacks.self, traceback, 1);
}

static void absorb_launch(kpti_gpu_session *s, kpti_launch *launch)
{
    kpti_gpu_known *row = row_of(s, launch->correlation);
    if (!row) {
        release(s, &launch->python);
        return;
    }
    row->launch.flags |= launch->flags;
    row->launch.os_tid = launch->os_tid;
    if (launch->flags & KPTI_LAUNCH_FAILED) return;
    release(s, &row->launch.python); /* of an earlier one of the same number */
    row->launch.python = launch->python;
}

static void absorb_links(kpti_gpu_session *s, kpti_gpu_lists *fresh)
{
    kpti_list_place place = {0};
    const kpti_gpu_link *link;
    while ((link = kpti_list_next(&fresh->of[KPTI_GPU_LINKS], &place))) {
        kpti_gpu_known *row = row_of(s, link->correlation);
        if (row) row->external = link->external;
    }
    kpti_list_free(&fresh->of[KPTI_GPU_LINKS], &s->budget);
}

static void see_event(kpti_gpu_session *s, const kpt_gpu_event *event)
{
    kpti_gpu_known *row =
        event->kind == KPT_GPU_KERNEL ? look_up(&s->table, event->correlation) : NULL;
    if (row) row->launch.flags |= KPTI_LAUNCH_SEEN;
    if (event->device != KPT_GPU_NONE && event->context < KPTI_MOST_CONTEXTS)
        s->device_of[event->context] = event->device + 1;
}

/* The records first, the launches behind them: a kernel's launch is in its list before it can have come. */
void kpti_join_absorb(kpti_gpu_session *s)
{
    kpti_gpu_lists fresh;
    kpti_list_place place = {0};
    const kpt_gpu_event *event;
    kpti_launch *launch;
    kpti_gpu_lists_init(&fresh);
    kpti_store_take(&s->store, &fresh);
    for (kpti_gpu_thread *t = kpti_launches_threads(); t; t = t->next)
        while ((launch = kpti_list_next(&t->list, &t->read)))
            absorb_launch(s, launch);
    absorb_links(s, &fresh);
    while ((event = kpti_list_next(&fresh.of[KPTI_GPU_EVENTS], &place)))
        see_event(s, event);
    kpti_gpu_lists_splice(&s->ready, &fresh);
}

void kpti_join_count_lost(kpti_gpu_session *s)
{
    const uint32_t settled = KPTI_LAUNCH_CAPTURED | KPTI_LAUNCH_FAILED | KPTI_LAUNCH_SEEN;
    for (uint64_t i = 0; i < s->table.room; i++) {
        const uint32_t flags = s->table.rows[i].launch.flags;
        s->lost_kernels += flags & KPTI_LAUNCH_KERNEL && !(flags & settled);
    }
}

void kpti_join_free(kpti_gpu_session *s)
{
    for (uint64_t i = 0; i < s->table.room; i++)
        release(s, &s->table.rows[i].launch.python);
    kpti_budget_free(&s->budget, s->table.rows, s->table.room * sizeof *s->table.rows);
    memset(&s->table, 0, sizeof s->table);
    kpti_gpu_lists_free(&s->ready, &s->budget);
}

int kpti_join_call(const kpti_gpu_session *s, const kpti_gpu_call *call, kpt_gpu_event *out)
{
    const int driver = call->kind == KPT_GPU_DRIVER;
    const kpti_gpu_known *row = look_up(&s->table, call->correlation);
    if (driver && row && row->launch.flags & KPTI_LAUNCH_RUNTIME) return 0;
    *out = (kpt_gpu_event){
        .kind = (uint16_t)call->kind,
        .device = KPT_GPU_NONE,
        .context = KPT_GPU_NONE,
        .stream = KPT_GPU_NONE,
        .start_ns = kpti_unix_clock_of(&s->clock, call->start),
        .end_ns = kpti_unix_clock_of(&s->clock, call->end),
        .correlation = call->correlation,
        .external = row ? row->external : 0,
        .os_tid = call->os_tid,
        .name = kpti_call_of(driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API,
                             call->cbid)
                    ->name,
        .value = call->result,
        .cbid = call->cbid,
    };
    if (row) out->python = row->launch.python;
    return 1;
}

void kpti_join_event(const kpti_gpu_session *s, kpt_gpu_event *event)
{
    const kpti_gpu_known *row = look_up(&s->table, event->correlation);
    event->start_ns = kpti_unix_clock_of(&s->clock, (uint64_t)event->start_ns);
    event->end_ns = kpti_unix_clock_of(&s->clock, (uint64_t)event->end_ns);
    if (event->device == KPT_GPU_NONE && event->context < KPTI_MOST_CONTEXTS &&
        s->device_of[event->context])
        event->device = s->device_of[event->context] - 1;
    if (!row) return;
    event->external = row->external;
    event->python = row->launch.python;
    if (!event->os_tid) event->os_tid = row->launch.os_tid;
}
