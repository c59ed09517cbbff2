/* deliver.c: see deliver.h. A batch has at most a few thousand events. */
#include "gpu_tracer/deliver.h"

#include "gpu_tracer/correlation/correlate.h"

enum { BATCH = 2048 };

typedef struct delivery {
    kpti_gpu_session *s;
    kpt_gpu_batch_fn sink;
    void *sink_ctx;
    kpt_status status; /* the last result of the sink */
    kpt_gpu_batch batch;
    kpt_gpu_event *events;
    uint32_t calls;
} delivery;

static void hand_out(delivery *d)
{
    if (d->status != KPT_OK) return;
    d->batch.events = d->events;
    d->status = d->sink(d->sink_ctx, &d->batch);
    d->batch.event_count = 0;
    d->calls++;
}

static void add(delivery *d, const kpt_gpu_event *event)
{
    if (d->status != KPT_OK) return;
    d->events[d->batch.event_count++] = *event;
    if (d->batch.event_count == BATCH) hand_out(d);
}

static void deliver_events(delivery *d)
{
    kpti_list *list = &d->s->ready.of[KPTI_GPU_EVENTS];
    kpti_list_position at = {0};
    kpt_gpu_event *event;
    while (d->status == KPT_OK && (event = kpti_list_next(list, &at))) {
        kpti_join_event(d->s, event);
        add(d, event);
    }
    kpti_list_free(list, &d->s->budget);
}

static void deliver_calls(delivery *d)
{
    kpti_list *list = &d->s->ready.of[KPTI_GPU_CALLS];
    kpti_list_position at = {0};
    const kpti_gpu_call *call;
    kpt_gpu_event event;
    while (d->status == KPT_OK && (call = kpti_list_next(list, &at))) {
        if (kpti_join_call(d->s, call, &event))
            add(d, &event);
        else
            atomic_fetch_sub_explicit(&d->s->store.events, 1, memory_order_relaxed);
    }
    kpti_list_free(list, &d->s->budget);
}

static uint64_t count_of(const kpti_list *list)
{
    kpti_list_position at = {0};
    uint64_t count = 0;
    while (kpti_list_next(list, &at))
        count++;
    return count;
}

static int by_id(const void *a, const void *b)
{
    const kpti_gpu_mark *x = a;
    const kpti_gpu_mark *y = b;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    if (x->flags != y->flags) return x->flags < y->flags ? -1 : 1; /* the begin first */
    return 0;
}

static kpt_gpu_event event_of_mark(const kpti_gpu_session *s, const kpti_gpu_mark *mark,
                                   uint64_t end, uint16_t kind, uint16_t flags)
{
    return (kpt_gpu_event){.kind = kind,
                           .flags = flags,
                           .device = KPT_GPU_NONE,
                           .context = KPT_GPU_NONE,
                           .stream = KPT_GPU_NONE,
                           .start_ns = kpti_unix_clock_of(&s->clock, mark->time),
                           .end_ns = kpti_unix_clock_of(&s->clock, end),
                           .os_tid = mark->os_tid,
                           .name = mark->name};
}

/* Delivers a mark, a range, or an open range. While recording, an open range is kept in OPEN for the next
 * delivery. Returns the number of marks consumed. */
static uint64_t deliver_mark(delivery *d, const kpti_gpu_mark *mark, uint64_t left, kpti_list *open)
{
    kpti_gpu_session *s = d->s;
    kpt_gpu_event event;
    if (mark->flags & CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS) {
        event = event_of_mark(s, mark, mark->time, KPT_GPU_MARK, 0);
        add(d, &event);
        return 1;
    }
    if (!(mark->flags & CUPTI_ACTIVITY_FLAG_MARKER_START))
        return 1; /* the range began before the recording */
    if (left > 1 && mark[1].id == mark->id && mark[1].flags & CUPTI_ACTIVITY_FLAG_MARKER_END) {
        event = event_of_mark(s, mark, mark[1].time, KPT_GPU_RANGE, 0);
        add(d, &event);
        return 2;
    }
    if (atomic_load(&s->state) == KPT_GPU_STOPPED) {
        event = event_of_mark(s, mark, s->stop_time, KPT_GPU_RANGE, KPT_GPU_UNENDED);
        event.end_ns = (int64_t)s->stop_time;
        add(d, &event);
    } else if (!kpti_list_add(open, &s->budget, mark)) {
        kpti_budget_drop(&s->budget, 1);
    }
    return 1;
}

static kpt_status deliver_marks(delivery *d)
{
    kpti_list *list = &d->s->ready.of[KPTI_GPU_MARKS];
    const uint64_t count = count_of(list);
    const uint64_t bytes = count * sizeof(kpti_gpu_mark);
    kpti_list open = {.item_size = list->item_size};
    kpti_list_position at = {0};
    kpti_gpu_mark *marks;
    if (!count) return KPT_OK;
    marks = kpti_alloc(d->s->env, bytes);
    if (!marks) return KPT_E_MEMORY;
    for (uint64_t i = 0; i < count; i++)
        marks[i] = *(const kpti_gpu_mark *)kpti_list_next(list, &at);
    qsort(marks, count, sizeof *marks, by_id);
    kpti_list_free(list, &d->s->budget);
    for (uint64_t i = 0; i < count;)
        i += deliver_mark(d, &marks[i], count - i, &open);
    kpti_list_splice(list, &open);
    kpti_free(d->s->env, marks, bytes);
    return KPT_OK;
}

/* Returns an array of all names, or NULL if there are no names or no memory. */
static kpt_gpu_name *all_names(const kpti_gpu_session *s, uint64_t count)
{
    kpt_gpu_name *names = count ? kpti_alloc(s->env, count * sizeof *names) : NULL;
    kpti_list_position at = {0};
    for (uint64_t i = 0; names && i < count; i++)
        names[i] = *(const kpt_gpu_name *)kpti_list_next(&s->ready.of[KPTI_GPU_NAMED], &at);
    return names;
}

kpt_status kpti_deliver(kpti_gpu_session *s, kpt_gpu_batch_fn sink, void *sink_ctx,
                        kpti_error *error)
{
    const uint64_t bytes = BATCH * sizeof(kpt_gpu_event);
    const uint64_t name_count = count_of(&s->ready.of[KPTI_GPU_NAMED]);
    kpt_gpu_name *names = all_names(s, name_count);
    delivery d = {.s = s, .sink = sink, .sink_ctx = sink_ctx, .status = KPT_OK};
    kpt_status status = KPT_E_MEMORY;
    d.events = kpti_alloc(s->env, bytes);
    if (d.events && (names || !name_count)) {
        if (!s->device_count && s->cupti)
            s->device_count = kpti_cuda_devices(s->devices, s->device_names);
        KPT_INIT(&d.batch);
        d.batch.event_stride = sizeof(kpt_gpu_event);
        d.batch.devices = s->devices;
        d.batch.device_count = s->device_count;
        d.batch.device_stride = sizeof(kpt_gpu_device);
        d.batch.names = names;
        d.batch.name_count = (uint32_t)name_count;
        d.batch.name_stride = sizeof(kpt_gpu_name);
        status = deliver_marks(&d); /* first, since it is the only part that allocates memory */
    }
    if (status == KPT_OK) {
        deliver_events(&d);
        deliver_calls(&d);
        if (d.batch.event_count || !d.calls) hand_out(&d);
        status = d.status;
    }
    if (d.events) kpti_free(s->env, d.events, bytes);
    if (names) kpti_free(s->env, names, name_count * sizeof *names);
    if (d.status != KPT_OK)
        return kpti_fail(error, status, "the sink returned %s", kpt_status_name(status));
    if (status != KPT_OK) return kpti_fail(error, status, "no memory to deliver GPU activities");
    return KPT_OK;
}
