/* The events of the log of GPUs: calls of CUDA, the work that they started, linked to the operators around the calls,
 * and the annotations on the devices. */
#include "hosts/torch/exporter/events/event_table.h"
#include "writers/gpu/gpu_launches.h"

/* The innermost operator and annotation around a call: an index + 1, or 0. */
typedef struct surroundings {
    uint32_t operator;
    uint32_t annotation;
} surroundings;

/* The operators or the annotations of a thread that may be open, outermost first. */
typedef struct stack {
    uint32_t *events;
    uint32_t capacity;
    uint32_t count;
} stack;

typedef struct track {
    stack operators;
    stack annotations;
    kpti_gpu_launch *next; /* the next call of the thread */
    kpti_gpu_launch *end;
} track;

typedef struct adder {
    kpti_event_table *table;
    kpti_gpu_launches launches;
    surroundings *around;  /* of each launch */
    kpti_u64_map spans;    /* by annotation and stream: the index of its event + 1 */
    kpti_u64_map track_of; /* by OS thread: index + 1 */
} adder;

/* --- what is around each call ----------------------------------------------------------------- */

static uint32_t innermost(const kpti_event_table *t, stack *s, int64_t time_ns)
{
    while (s->count && t->events[s->events[s->count - 1]].end_ns < time_ns)
        s->count--;
    return s->count ? s->events[s->count - 1] + 1 : 0;
}

static void find_before(adder *a, track *l, int64_t time_ns)
{
    for (; l->next < l->end && l->next->start_ns < time_ns; l->next++)
        a->around[l->next - a->launches.items] =
            (surroundings){innermost(a->table, &l->operators, l->next->start_ns),
                           innermost(a->table, &l->annotations, l->next->start_ns)};
}

static kpt_status push(adder *a, track *tracks, uint32_t index)
{
    const kpti_event *const event = &a->table->events[index];
    const int is_annotation = event->kind == KPTI_EVENT_ANNOTATION;
    track *const l = &tracks[event->thread];
    stack *const s = is_annotation ? &l->annotations : &l->operators;
    if (!is_annotation && event->kind != KPTI_EVENT_OPERATOR) return KPT_OK;
    find_before(a, l, event->start_ns);
    (void)innermost(a->table, s, event->start_ns);
    if (kpti_array_reach(&a->table->heap, &s->events, &s->capacity, s->count, sizeof index) !=
        KPT_OK)
        return KPT_E_MEMORY;
    s->events[s->count++] = index;
    return KPT_OK;
}

static kpt_status find_surroundings(adder *a)
{
    kpti_event_table *const t = a->table;
    track *const tracks = calloc((size_t)t->thread_count + 1, sizeof *tracks);
    kpt_status status = tracks ? KPT_OK : KPT_E_MEMORY;
    for (uint32_t i = 0; tracks && i < t->thread_count; i++) {
        tracks[i].next =
            kpti_gpu_launches_of_thread(&a->launches, t->threads[i].os_tid, &tracks[i].end);
    }
    for (uint32_t i = 0; status == KPT_OK && i < t->count; i++)
        status = push(a, tracks, i);
    for (uint32_t i = 0; tracks && i < t->thread_count; i++) {
        find_before(a, &tracks[i], INT64_MAX);
        free(tracks[i].operators.events);
        free(tracks[i].annotations.events);
    }
    free(tracks);
    return status;
}

/* --- events ----------------------------------------------------------------------------------- */

static uint32_t thread_of(adder *a, uint64_t os_tid)
{
    const uint32_t *const number = kpti_u64_map_at(&a->track_of, os_tid);
    return number && *number ? *number - 1 : 0;
}

static kpti_event *add(adder *a, uint32_t kind, kpt_str name, const kpti_event_gpu *more)
{
    kpti_event_table *const t = a->table;
    kpti_event *const event = kpti_event_table_add(t);
    if (!event || kpti_array_reach(&t->heap, &t->gpu, &t->gpu_capacity, t->gpu_count,
                                   sizeof *t->gpu) != KPT_OK)
        return NULL;
    event->kind = (uint8_t)kind;
    event->name = kpti_event_names_text(&t->names, name);
    event->more = t->gpu_count;
    t->gpu[t->gpu_count++] = *more;
    return event->name ? event : NULL;
}

/* Extends the span of an annotation on the stream of WORK. */
static kpt_status span(adder *a, uint32_t annotation, const kpt_gpu_event *work)
{
    kpti_event_table *const t = a->table;
    const kpti_event *const user = &t->events[annotation];
    const uint64_t stream = (uint64_t)(work->device & 0x7f) << 24 | (work->stream & 0xffffff);
    uint32_t *const known = kpti_u64_map_at(&a->spans, (uint64_t)annotation << 31 | stream);
    const kpti_event_gpu more = {
        .correlation = user->id, .device = work->device, .stream = work->stream};
    kpti_event *event;
    if (!known) return KPT_E_MEMORY;
    if (*known) {
        event = &t->events[*known - 1];
        if (work->start_ns < event->start_ns) event->start_ns = work->start_ns;
        if (work->end_ns > event->end_ns) event->end_ns = work->end_ns;
        return KPT_OK;
    }
    event = add(a, KPTI_EVENT_GPU_ANNOTATION, t->names.texts[user->name], &more);
    if (!event) return KPT_E_MEMORY;
    event->start_ns = work->start_ns;
    event->end_ns = work->end_ns;
    event->thread = t->events[annotation].thread;
    *known = t->count;
    return KPT_OK;
}

static kpt_status add_event(adder *a, const kpt_gpu_event *from)
{
    const kpti_gpu_launch *const launch = kpti_gpu_launch_of(&a->launches, from);
    const surroundings around =
        launch ? a->around[launch - a->launches.items] : (surroundings){0, 0};
    const int is_call = kpti_gpu_is_call(from->kind) || from->kind == KPT_GPU_OVERHEAD;
    const kpti_event_gpu more = {
        .correlation = from->correlation,
        .linked = around.operator
        ? a->table->events[around.operator- 1].id : 0, .kind = from->kind, .device = from->device,
                           .stream = from->stream, .bytes = from->bytes };
    kpti_event *const event =
        add(a, is_call ? KPTI_EVENT_GPU_CALL : KPTI_EVENT_GPU_WORK, from->name, &more);
    if (!event) return KPT_E_MEMORY;
    event->start_ns = from->start_ns;
    event->end_ns = from->end_ns;
    event->thread = launch ? thread_of(a, launch->os_tid) : thread_of(a, from->os_tid);
    if (launch && from->correlation <= UINT32_MAX) {
        event->flow = (uint32_t)from->correlation;
        if (is_call) event->flags = KPTI_EVENT_FLOW_START;
    }
    if (!kpti_gpu_is_work(from->kind) || !around.annotation) return KPT_OK;
    return span(a, around.annotation - 1, from);
}

static kpt_status add_events(adder *a, const kpti_gpu_log *log)
{
    kpti_gpu_cursor cursor = {.log = log};
    const kpti_gpu_entry *e;
    kpt_status status = KPT_OK;
    for (uint32_t i = 0; i < a->table->thread_count; i++) {
        uint32_t *const number = kpti_u64_map_at(&a->track_of, a->table->threads[i].os_tid);
        if (!number) return KPT_E_MEMORY;
        if (!*number) *number = i + 1;
    }
    while (status == KPT_OK && (e = kpti_gpu_next(&cursor)))
        if (e->event.kind != KPT_GPU_RANGE && e->event.kind != KPT_GPU_MARK)
            status = add_event(a, &e->event);
    return status;
}

kpt_status kpti_event_table_add_gpu(kpti_event_table *table, const kpti_gpu_log *log)
{
    adder a = {.table = table};
    kpt_status status = kpti_gpu_launches_make(&a.launches, log);
    if (status == KPT_OK) {
        a.around = calloc((size_t)a.launches.count + 1, sizeof *a.around);
        status = a.around ? find_surroundings(&a) : KPT_E_MEMORY;
    }
    if (status == KPT_OK) status = add_events(&a, log);
    free(a.around);
    kpti_gpu_launches_free(&a.launches);
    kpti_u64_map_free(&a.spans);
    kpti_u64_map_free(&a.track_of);
    return status;
}
