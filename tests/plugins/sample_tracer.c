/* sample_tracer.c: the tracer's functions for hosts, and the states in which they are legal. Its recording
 * is the script. */
#include "tests/plugins/sample.h"

/* Enters the tracer; its head is the object's. */
static kpt_status enter(kpt_handle self, sample_tracer **out)
{
    sample_object *object;
    kpt_status status = sample_enter(self, KPT_FACTORY_TRACER, &object);
    *out = (sample_tracer *)object;
    if (status == KPT_OK && wrong("R315") && !pthread_equal(object->maker, pthread_self()))
        return sample_leave(object, sample_refuse(object, KPT_E_STATE, "not on this thread"));
    return status;
}

static kpt_status leave(sample_tracer *tracer, kpt_status status)
{
    return sample_leave(&tracer->object, status);
}

static kpt_status refuse(sample_tracer *tracer, kpt_status status, const char *text)
{
    return sample_refuse(&tracer->object, status, text);
}

/* Returns the host's clock, if it has one. */
static uint64_t now_ticks(const sample_tracer *t)
{
    const kpt_host *host = &t->object.binding->host;
    return host->tick_source == KPT_TICKS_HOST ? host->now_ticks(host->ctx) : 0;
}

/* The script is spread over the time from make to stop. */
uint64_t sample_host_ticks(const sample_tracer *t, uint64_t ticks)
{
    const kpt_host *host = &t->object.binding->host;
    const uint64_t begin = sample_script[0].begin_ticks;
    uint64_t last = t->last_ticks;
    if (host->tick_source != KPT_TICKS_HOST || t->is_loaded || wrong("R526")) return ticks;
    if (t->object.state == KPT_STATE_RUNNING) last = now_ticks(t);
    return t->first_ticks + (last - t->first_ticks) / (SAMPLE_STOP_TICKS - begin) * (ticks - begin);
}

static kpt_status stop(kpt_handle self)
{
    sample_tracer *t;
    kpt_status status = enter(self, &t);
    if (status == KPT_E_HANDLE && wrong("R311") && sample_is_gone(self)) return KPT_E_INVALID;
    if (status != KPT_OK) return status;
    if (t->object.state == KPT_STATE_RUNNING) {
        sample_lock();
        t->object.state = KPT_STATE_STOPPED;
        sample_unlock();
        sample_attach_wait(t);
        t->last_ticks = now_ticks(t);
        if (t->sink.sealed) sample_hand(t);
        if (wrong("R301")) status = KPT_DECLINED;
    } else if (t->ended_by_fork) {
        t->ended_by_fork = 0;
    } else if (!wrong("R302") || t->empty || t->is_loaded) {
        status = refuse(t, KPT_E_STATE, "stop: the tracer is stopped");
    }
    return leave(t, status);
}

static kpt_status restart(kpt_handle self)
{
    sample_tracer *t;
    kpt_status status = enter(self, &t);
    if (status != KPT_OK) return status;
    if (t->is_loaded && !wrong("R777"))
        return leave(t, refuse(t, KPT_E_UNSUPPORTED, "restart: it was loaded"));
    if (t->object.state == KPT_STATE_STOPPED) {
        t->object.state = wrong("R304") ? KPT_STATE_STOPPED : KPT_STATE_RUNNING;
        t->gc_recorded = t->gc_asked;
        t->empty = 0;
        t->ended_by_fork = 0;
        t->restarts++;
        if (wrong("R806")) t->attached_count = 0;
    } else if (!wrong("R303") || t->restarts) {
        status = refuse(t, KPT_E_STATE, "restart: the tracer is running");
    }
    return leave(t, status);
}

static kpt_status register_gc_callback(kpt_handle self)
{
    sample_tracer *t;
    kpt_status status = enter(self, &t);
    if (status != KPT_OK) return status;
    if (t->gc_asked && wrong("R307")) status = refuse(t, KPT_E_STATE, "collections are recorded");
    t->gc_asked = 1;
    if (t->object.state == KPT_STATE_RUNNING) t->gc_recorded = 1;
    return leave(t, status);
}

static kpt_status take_delivery(sample_tracer *t, const kpt_delivery *theirs, kpt_delivery *local)
{
    static const sample_layout layout = {sizeof(kpt_delivery), KPT_DELIVERY_V1_SIZE, "R503", "R504",
                                         "R505"};
    kpt_status status = sample_read(local, &layout, theirs);
    if (status != KPT_OK) return refuse(t, status, "the delivery is NULL, or below its V1 size");
    if (!local->sink) return refuse(t, KPT_E_INVALID, "the delivery has no sink");
    if ((local->flags & ~(uint32_t)(KPT_DELIVER_MARKED | KPT_DELIVER_POINTS | KPT_DELIVER_PARTS) ||
         local->order > KPT_ORDER_START) &&
        !wrong("R506"))
        return refuse(t, KPT_E_UNSUPPORTED, "the delivery's order or flags are unknown");
    if (local->flags & KPT_DELIVER_MARKED && local->order == KPT_ORDER_TIME)
        return refuse(t, KPT_E_UNSUPPORTED, "a begin is not marked yet");
    if (local->flags & KPT_DELIVER_POINTS && local->order == KPT_ORDER_START && !wrong("R535"))
        return refuse(t, KPT_E_UNSUPPORTED, "points are not delivered by start");
    if (local->order > KPT_ORDER_START) local->order = KPT_ORDER_THREAD;
    return KPT_OK;
}

static kpt_status deliver(sample_tracer *t, const kpt_delivery *theirs)
{
    kpt_delivery delivery;
    kpt_status status = take_delivery(t, theirs, &delivery);
    if (status == KPT_E_INVALID && wrong(theirs ? "R502" : "R501")) return KPT_OK;
    if (status == KPT_OK) {
        status = sample_deliver(t, &delivery);
        if (status != KPT_OK) (void)refuse(t, status, "the sink ended the delivery");
    }
    return status;
}

static kpt_status get_events(kpt_handle self, const kpt_delivery *delivery)
{
    sample_tracer *t;
    kpt_status status = enter(self, &t);
    if (status != KPT_OK) return status;
    if (t->object.state == KPT_STATE_RUNNING && !wrong("R305"))
        return leave(t, refuse(t, KPT_E_STATE, "get_events: the tracer is running"));
    return leave(t, deliver(t, delivery));
}

static kpt_status snapshot(kpt_handle self, const kpt_delivery *delivery)
{
    sample_tracer *t;
    kpt_status status = enter(self, &t);
    if (status != KPT_OK) return status;
    if (t->object.state == KPT_STATE_RUNNING && wrong("R308"))
        return leave(t, refuse(t, KPT_E_STATE, "snapshot: the tracer is running"));
    return leave(t, deliver(t, delivery));
}

/* Each call of the script has two events; the second event of an open call is the stop. */
static void count(const sample_tracer *t, kpt_stats *stats)
{
    KPT_INIT(stats);
    stats->state = t->object.state;
    if (wrong("R309") && !t->ended_by_fork && !t->is_loaded) stats->state = KPT_STATE_RUNNING;
    for (uint32_t i = 0; i < SAMPLE_CALLS; i++)
        if (sample_recorded(t, &sample_script[i])) stats->events += 2;
    stats->bytes_held = sizeof(sample_recording);
    stats->threads = t->empty ? 0 : SAMPLE_THREADS;
}

static kpt_status get_stats(kpt_handle self, kpt_stats *out)
{
    static const sample_layout layout = {sizeof(kpt_stats), KPT_STATS_V1_SIZE, "R601", "R602",
                                         NULL};
    sample_tracer *t;
    kpt_stats stats;
    sample_object *memory;
    kpt_status status = enter(self, &t);
    if (status == KPT_E_BUSY && wrong("R522")) return KPT_OK;
    if (status == KPT_E_HANDLE && wrong("R312") && self == 0) return KPT_OK;
    if (status == KPT_E_HANDLE && wrong("R316") &&
        (memory = sample_use(self, KPT_FACTORY_MEMORY))) {
        sample_release(memory);
        return KPT_OK;
    }
    if (status != KPT_OK) return status;
    status = sample_check(out, &layout);
    if (status != KPT_OK)
        return leave(t, refuse(t, status, "get_stats: out is NULL, or below its V1 size"));
    count(t, &stats);
    sample_write(out, &layout, &stats);
    return leave(t, KPT_OK);
}

sample_marks sample_marks_now(const sample_tracer *t)
{
    sample_marks marks;
    sample_lock();
    marks = t->marks;
    sample_unlock();
    return marks;
}

/* Takes the lock, since this tracer need not be fast. */
static kpt_status mark(kpt_handle self, uint32_t what, uint64_t number)
{
    sample_object *object = sample_use(self, KPT_FACTORY_TRACER);
    sample_tracer *t = (sample_tracer *)object;
    sample_marks *m;
    kpt_status status = KPT_OK;
    if (!object) return KPT_E_HANDLE;
    if ((what < KPT_MARK_POINT || what > KPT_MARK_END) && !wrong("R531")) status = KPT_E_INVALID;
    sample_lock();
    m = &t->marks;
    if (what == KPT_MARK_POINT && object->state == KPT_STATE_RUNNING) {
        m->marked = 1;
        if (number && m->point_count < SAMPLE_POINTS) m->points[m->point_count++] = number;
    }
    sample_unlock();
    sample_attach(t);
    sample_release(object);
    return status;
}

static kpt_status get_chunks(kpt_handle self, const kpt_chunk_sink *theirs)
{
    static const sample_layout layout = {sizeof(kpt_chunk_sink), KPT_CHUNK_SINK_V1_SIZE, "R541",
                                         NULL, NULL};
    sample_tracer *t;
    kpt_chunk_sink sink;
    kpt_status status = enter(self, &t);
    if (status != KPT_OK) return status;
    if (theirs) {
        status = sample_take_sink(&t->object, theirs, &layout, "R542", &sink);
        if (status == KPT_OK && sink.sealed) status = sample_hand_copy(t, &sink);
    } else if (t->sink.sealed) {
        sample_hand(t);
    } else if (!wrong("R543") || t->is_loaded) {
        status = refuse(t, KPT_E_INVALID, "get_chunks: the tracer has no sink");
    }
    return leave(t, status);
}

/* The object is made as a factory would, with default arguments. */
static kpt_status make_extension(const sample_tracer *t, kpt_str name, void *out)
{
    void *make_ctx = sample_make_ctx(t->object.binding);
    kpt_memory_args memory;
    kpt_observer_args observer;
    KPT_INIT(&memory);
    KPT_INIT(&observer);
    if (kpt_str_is(name, KPT_EXT_MEMORY) && !wrong("R718"))
        return sample_make(&sample_memory_product, make_ctx, &memory, out);
    if (kpt_str_is(name, KPT_EXT_OBSERVER) && !wrong("R740"))
        return sample_make(&sample_observer_product, make_ctx, &observer, out);
    return wrong("R701") ? KPT_OK : KPT_E_UNSUPPORTED;
}

static kpt_status get_extension(kpt_handle self, kpt_str name, void *out)
{
    sample_tracer *t;
    kpt_status status = enter(self, &t);
    if (status != KPT_OK) return status;
    status = sample_check_extension(&t->object, name, out);
    if (status != KPT_OK) return leave(t, wrong("R702") ? KPT_OK : status);
    status = make_extension(t, name, out);
    if (status != KPT_OK) (void)refuse(t, status, "get_extension: it is unknown, or was not made");
    return leave(t, status);
}

static kpt_status destroy(kpt_handle self)
{
    return sample_destroy(&sample_tracer_product, self);
}

static kpt_tracer_ops ops = {
    .struct_size = sizeof ops,
    .stop = stop,
    .restart = restart,
    .register_gc_callback = register_gc_callback,
    .get_events = get_events,
    .snapshot = snapshot,
    .get_stats = get_stats,
    .last_error = sample_last_error,
    .get_extension = get_extension,
    .destroy = destroy,
    .mark = mark,
    .get_chunks = get_chunks,
};

__attribute__((constructor)) static void shorten(void)
{
    if (wrong("R202")) ops.struct_size = KPT_TRACER_OPS_V1_SIZE - (uint32_t)sizeof(kpt_any_fn);
}

static void begin(sample_object *object, const void *args)
{
    const kpt_tracer_args *a = args;
    sample_tracer *t = (sample_tracer *)object;
    object->state = KPT_STATE_RUNNING;
    t->flags = a->flags;
    t->first_ticks = now_ticks(t);
    if (a->chunk_sink) memcpy(&t->sink, a->chunk_sink, KPT_CHUNK_SINK_V1_SIZE);
    sample_record(object->extra);
}

void sample_tracer_forked(sample_object *object)
{
    sample_tracer *t = (sample_tracer *)object;
    t->ended_by_fork |= object->state == KPT_STATE_RUNNING;
    object->state = KPT_STATE_STOPPED;
    t->empty = !t->is_loaded && !wrong("R801");
}

const sample_class sample_tracer_product = {
    .kind = KPT_FACTORY_TRACER,
    .why = "",
    .args = {sizeof(kpt_tracer_args), KPT_TRACER_ARGS_V1_SIZE, "R205", "R206", "R207"},
    .out = {sizeof(kpt_tracer), KPT_TRACER_V1_SIZE, "R208", "R209", NULL},
    .ops = &ops,
    .ops_v1_size = KPT_TRACER_OPS_V1_SIZE,
    .object_bytes = sizeof(sample_tracer),
    .extra_bytes = sizeof(sample_recording),
    .check = sample_check_tracer_args,
    .begin = begin,
};
