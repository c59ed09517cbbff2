/* sample_delivery.c: one delivery: times for the script's calls, the visits to them in the requested order,
 * ids, and batches. All of its state is on the stack of the call. */
#include "tests/plugins/sample.h"

enum { DEFAULT_BATCH = 5, MAX_VISITS = 2 * SAMPLE_CALLS + SAMPLE_POINTS, MAX_DEPTH = 3 };

/* An activity to be delivered: a call, its begin or its end; or a point in it. */
typedef struct visit {
    uint32_t call; /* its index in the script */
    uint16_t phase;
    int64_t at_ns;
    uint64_t point; /* its number; 0 if it is not a point */
} visit;

typedef struct delivery {
    const sample_tracer *tracer;
    const kpt_delivery *asked;
    int64_t start_ns[SAMPLE_CALLS];
    int64_t end_ns[SAMPLE_CALLS];
    sample_marks marks;
    int64_t point_ns;
    int64_t last_ns;                    /* no activity is later */
    uint32_t start_flags[SAMPLE_CALLS]; /* known when the call begins */
    uint32_t end_flags[SAMPLE_CALLS];
    uint64_t ids[SAMPLE_CALLS]; /* 0 if not recorded */
    uint64_t parent_ids[SAMPLE_CALLS];
    visit visits[MAX_VISITS];
    uint32_t visit_count;
    int name_sent[SAMPLE_NAMES];
    int thread_sent[SAMPLE_THREADS];
} delivery;

/* Returns 1 if the call was requested: collections once registered, C calls unless disabled. */
int sample_recorded(const sample_tracer *tracer, const sample_call *call)
{
    if (tracer->empty || tracer->taken >> call->thread & 1) return 0;
    if (tracer->is_loaded) return (int)(tracer->loaded_calls >> (call - sample_script) & 1);
    if (call->kind == KPT_KIND_GC) return tracer->gc_recorded;
    return call->kind != KPT_KIND_C || !(tracer->flags & KPT_TRACE_NO_C_CALLS);
}

/* Returns 1 for a root without children that is not the last call; most wrong variants deviate there. */
static int is_lone_root(uint32_t call)
{
    return sample_script[call].depth == 0 && call + 1 < SAMPLE_CALLS &&
           sample_script[call + 1].depth == 0 &&
           sample_script[call + 1].thread == sample_script[call].thread;
}

/* --- times ------------------------------------------------------------------------------------- */

static uint64_t end_ticks(const sample_call *call)
{
    return call->end_ticks == SAMPLE_STILL_OPEN ? SAMPLE_STOP_TICKS : call->end_ticks;
}

/* Every tick of the script, in order, with its time. */
typedef struct timeline {
    uint64_t ticks[2 * SAMPLE_CALLS + 2];
    int64_t ns[2 * SAMPLE_CALLS + 2];
    uint32_t count;
} timeline;

static void add_ticks(timeline *line, uint64_t ticks)
{
    uint32_t at = line->count++;
    for (; at > 0 && line->ticks[at - 1] > ticks; at--)
        line->ticks[at] = line->ticks[at - 1];
    line->ticks[at] = ticks;
}

static int64_t time_of(const timeline *line, uint64_t ticks)
{
    uint32_t at = 0;
    while (line->ticks[at] != ticks)
        at++;
    return line->ns[at];
}

static void convert_all(timeline *line, const sample_tracer *tracer, const kpt_delivery *asked)
{
    uint64_t theirs[sizeof line->ticks / sizeof *line->ticks];
    line->count = 0;
    add_ticks(line, SAMPLE_STOP_TICKS);
    add_ticks(line, SAMPLE_POINT_TICKS);
    for (uint32_t i = 0; i < SAMPLE_CALLS; i++) {
        add_ticks(line, sample_script[i].begin_ticks);
        add_ticks(line, end_ticks(&sample_script[i]));
    }
    if (asked->convert && !wrong("R520")) {
        for (uint32_t i = 0; i < line->count; i++)
            theirs[i] = sample_host_ticks(tracer, line->ticks[i]);
        asked->convert(asked->convert_ctx, theirs, line->ns, line->count);
    } else {
        for (uint32_t i = 0; i < line->count; i++)
            line->ns[i] = (int64_t)(wrong("R520") ? line->ticks[i] * 2 : line->ticks[i]);
    }
    /* A convert function that is not monotone must not make calls cross. */
    for (uint32_t i = 1; i < line->count; i++)
        if (line->ns[i] < line->ns[i - 1]) line->ns[i] = line->ns[i - 1];
}

/* Open calls end at the delivery's end, and no time is later. */
static void set_times(delivery *d)
{
    timeline line;
    int64_t end_ns;
    convert_all(&line, d->tracer, d->asked);
    end_ns = d->asked->end_ns ? d->asked->end_ns : time_of(&line, SAMPLE_STOP_TICKS);
    d->last_ns = end_ns;
    d->point_ns = time_of(&line, SAMPLE_POINT_TICKS);
    for (uint32_t i = 0; i < SAMPLE_CALLS; i++) {
        const sample_call *call = &sample_script[i];
        int open = call->end_ticks == SAMPLE_STILL_OPEN;
        d->start_flags[i] = call->flags & KPT_ACTIVITY_BEGAN_BEFORE;
        d->end_flags[i] = call->flags;
        d->start_ns[i] = time_of(&line, call->begin_ticks);
        d->end_ns[i] = open ? end_ns : time_of(&line, call->end_ticks);
        if (d->start_ns[i] > end_ns) {
            d->start_ns[i] = end_ns;
            d->start_flags[i] |= KPT_ACTIVITY_CLAMPED;
        }
        if (d->end_ns[i] > end_ns) {
            d->end_ns[i] = end_ns;
            d->end_flags[i] |= KPT_ACTIVITY_CLAMPED;
        }
        if (open && wrong("R525")) d->end_ns[i]--;
    }
    for (uint32_t i = 0; d->marks.marked && i < SAMPLE_MARKED; i++)
        if (i > 0 || !wrong("R532")) d->end_flags[i] |= KPT_ACTIVITY_MARKED;
    if (wrong("R512") && d->asked->end_ns) d->end_ns[SAMPLE_CALLS - 1] = end_ns + 1;
    if (wrong("R513")) d->end_ns[SAMPLE_CALLS - 2] = d->end_ns[SAMPLE_CALLS - 3] + 1;
}

/* --- order and ids ----------------------------------------------------------------------------- */

static void visit_call(delivery *d, uint32_t call, uint16_t phase)
{
    int64_t at_ns = phase == KPT_PHASE_END ? d->end_ns[call] : d->start_ns[call];
    if (phase == KPT_PHASE_BEGIN && is_lone_root(call) && wrong("R515")) return;
    d->visits[d->visit_count++] = (visit){call, phase, at_ns, 0};
}

static void begin_call(delivery *d, uint32_t call)
{
    if (d->asked->order == KPT_ORDER_TIME)
        visit_call(d, call, KPT_PHASE_BEGIN);
    else if (d->asked->order == KPT_ORDER_START || wrong("R514"))
        visit_call(d, call, KPT_PHASE_COMPLETE);
}

static void end_call(delivery *d, uint32_t call)
{
    if (d->asked->order == KPT_ORDER_TIME)
        visit_call(d, call, KPT_PHASE_END);
    else if (d->asked->order == KPT_ORDER_THREAD && !wrong("R514"))
        visit_call(d, call, KPT_PHASE_COMPLETE);
}

/* All points are at one time, in the innermost call that they mark. */
static void visit_points(delivery *d, uint32_t call)
{
    if (call != SAMPLE_MARKED - 1 || !(d->asked->flags & KPT_DELIVER_POINTS)) return;
    if (d->point_ns > d->last_ns || d->asked->order == KPT_ORDER_START) return;
    for (uint32_t i = 0; i < d->marks.point_count; i++)
        d->visits[d->visit_count++] =
            (visit){call, KPT_PHASE_COMPLETE, d->point_ns, d->marks.points[i]};
}

/* Returns 1 if this delivery omits the call. */
static int left_out(const delivery *d, uint32_t call)
{
    uint32_t order = d->asked->order;
    if (is_lone_root(call) && wrong("R306") && d->tracer->deliveries[order] > 1) return 1;
    if (call == SAMPLE_CALLS - 1 && wrong("R517") && order == KPT_ORDER_START) return 1;
    return !sample_recorded(d->tracer, &sample_script[call]);
}

/* Walks each thread's calls as they ran: begins and ends, well nested and by time. */
static void walk(delivery *d)
{
    uint32_t open[MAX_DEPTH];
    uint32_t depth = 0;
    for (uint32_t i = 0; i < SAMPLE_CALLS; i++) {
        const sample_call *call = &sample_script[i];
        if (left_out(d, i)) continue;
        while (depth > 0 && (sample_script[open[depth - 1]].thread != call->thread ||
                             sample_script[open[depth - 1]].depth >= call->depth))
            end_call(d, open[--depth]);
        d->parent_ids[i] = depth > 0 ? open[depth - 1] : SAMPLE_CALLS; /* as an index, still */
        begin_call(d, i);
        visit_points(d, i);
        open[depth++] = i;
    }
    while (depth > 0)
        end_call(d, open[--depth]);
}

/* Merges the threads by time. The sort is stable: at equal times each thread's visits keep their order, so
 * ends precede begins, and parents precede children. */
static void sort_by_time(delivery *d)
{
    for (uint32_t i = 1; i < d->visit_count; i++) {
        visit v = d->visits[i];
        uint32_t at = i;
        for (; at > 0 && d->visits[at - 1].at_ns > v.at_ns; at--)
            d->visits[at] = d->visits[at - 1];
        d->visits[at] = v;
    }
}

/* START assigns ids in the order of delivery, the other orders in the pre-order of the script. */
static void number(delivery *d)
{
    uint64_t id = 0;
    memset(d->ids, 0, sizeof d->ids);
    if (d->asked->order == KPT_ORDER_START) {
        for (uint32_t i = 0; i < d->visit_count; i++)
            d->ids[d->visits[i].call] = ++id;
    } else {
        for (uint32_t i = 0; i < SAMPLE_CALLS; i++)
            if (!left_out(d, i)) d->ids[i] = ++id;
    }
    for (uint32_t i = 0; i < SAMPLE_CALLS; i++) {
        uint64_t parent = d->parent_ids[i];
        d->parent_ids[i] = parent < SAMPLE_CALLS ? d->ids[parent] : 0;
        if (is_lone_root(i) && d->asked->order != KPT_ORDER_START && wrong("R510"))
            d->ids[i]--; /* not a parent's id; with order START it would be out of order */
    }
}

/* Keeps only marked calls. The omitted calls have ids as well. */
static void keep_marked(delivery *d)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < d->visit_count; i++)
        if (d->end_flags[d->visits[i].call] & KPT_ACTIVITY_MARKED) d->visits[kept++] = d->visits[i];
    d->visit_count = kept;
}

static void put_in_order(delivery *d)
{
    for (uint32_t i = 0; i < SAMPLE_CALLS; i++)
        d->parent_ids[i] = SAMPLE_CALLS;
    walk(d);
    if (d->asked->order != KPT_ORDER_THREAD) sort_by_time(d);
    if (d->asked->order == KPT_ORDER_START && d->visit_count > 1 && wrong("R516")) {
        visit last = d->visits[d->visit_count - 1];
        d->visits[d->visit_count - 1] = d->visits[d->visit_count - 2];
        d->visits[d->visit_count - 2] = last;
    }
    number(d);
    if (d->asked->flags & KPT_DELIVER_MARKED && !wrong("R533")) keep_marked(d);
}

/* --- batches ----------------------------------------------------------------------------------- */

static kpt_activity point_of(const delivery *d, const visit *v)
{
    const sample_call *call = &sample_script[v->call];
    kpt_activity a;
    memset(&a, 0, sizeof a);
    a.parent_id = wrong("R534") ? 0 : d->ids[v->call];
    a.start_ns = a.end_ns = v->at_ns;
    a.thread = call->thread;
    a.name = SAMPLE_POINT_NAME;
    a.kind = KPT_KIND_POINT;
    a.depth = call->depth + 1;
    a.value0 = v->point;
    return a;
}

static kpt_activity activity_of(const delivery *d, const visit *v)
{
    const sample_call *call = &sample_script[v->call];
    int begins = v->phase == KPT_PHASE_BEGIN;
    kpt_activity a;
    memset(&a, 0, sizeof a);
    a.id = d->ids[v->call];
    a.parent_id = d->parent_ids[v->call];
    a.start_ns = d->start_ns[v->call];
    a.end_ns = begins ? a.start_ns : d->end_ns[v->call];
    a.thread = call->thread;
    a.name = call->name;
    a.kind = call->kind;
    a.phase = v->phase;
    a.flags = d->start_flags[v->call] | (begins ? 0 : d->end_flags[v->call]);
    a.depth = wrong("R524") ? 0 : call->depth;
    if (call->kind == KPT_KIND_GC) {
        a.value0 = 2;
        a.value1 = begins ? 0 : 3;
    }
    if (is_lone_root(v->call) && wrong("R523")) a.kind = 99;
    if (is_lone_root(v->call) && d->asked->flags & KPT_DELIVER_PARTS && wrong("R536"))
        a.flags |= KPT_ACTIVITY_CONTINUED;
    if (call->depth == 2 && d->asked->order == KPT_ORDER_TIME && wrong("R511")) a.parent_id = 9999;
    return a;
}

/* A batch and its arrays. */
typedef struct parcel {
    kpt_batch batch;
    kpt_activity activities[MAX_VISITS];
    kpt_name names[SAMPLE_NAMES];
    kpt_thread threads[SAMPLE_THREADS];
} parcel;

static void add_activity(delivery *d, parcel *p, const visit *v)
{
    const sample_recording *recording = d->tracer->object.extra;
    kpt_activity a = v->point ? point_of(d, v) : activity_of(d, v);
    p->activities[p->batch.activity_count++] = a;
    if (!d->name_sent[a.name] && !wrong("R509")) {
        d->name_sent[a.name] = 1;
        p->names[p->batch.name_count++] = recording->names[a.name];
    }
    if (!d->thread_sent[a.thread]) {
        d->thread_sent[a.thread] = 1;
        p->threads[p->batch.thread_count++] = recording->threads[a.thread];
    }
}

static void open_parcel(const delivery *d, parcel *p)
{
    KPT_INIT(&p->batch);
    if (wrong("R508")) p->batch.struct_size = 8;
    p->batch.order = d->asked->order;
    p->batch.activities = p->activities;
    p->batch.activity_stride = sizeof *p->activities;
    p->batch.names = p->names;
    p->batch.name_stride = sizeof *p->names;
    p->batch.threads = p->threads;
    p->batch.thread_stride = sizeof *p->threads;
}

typedef struct errand {
    const kpt_delivery *asked;
    const kpt_batch *batch;
    kpt_status status;
} errand;

static void *run_errand(void *ctx)
{
    errand *e = ctx;
    e->status = e->asked->sink(e->asked->sink_ctx, e->batch);
    return NULL;
}

static kpt_status send(const delivery *d, const parcel *p)
{
    errand e = {d->asked, &p->batch, KPT_OK};
    pthread_t thread;
    if (wrong("R519") && pthread_create(&thread, NULL, run_errand, &e) == 0)
        (void)pthread_join(thread, NULL);
    else
        (void)run_errand(&e);
    return wrong("R518") ? KPT_OK : e.status;
}

static kpt_status send_all(delivery *d)
{
    uint64_t most = d->asked->batch_size ? d->asked->batch_size : DEFAULT_BATCH;
    kpt_status status = KPT_OK;
    uint32_t next = 0;
    parcel p;
    if (wrong("R507")) most++;
    while (status == KPT_OK && next < d->visit_count) {
        open_parcel(d, &p);
        while (next < d->visit_count && p.batch.activity_count < most)
            add_activity(d, &p, &d->visits[next++]);
        status = send(d, &p);
    }
    if (status == KPT_OK && wrong("R509")) {
        const sample_recording *recording = d->tracer->object.extra;
        open_parcel(d, &p);
        memcpy(p.names, recording->names, sizeof p.names);
        p.batch.name_count = SAMPLE_NAMES;
        status = send(d, &p);
    }
    return status;
}

kpt_status sample_deliver(sample_tracer *tracer, const kpt_delivery *asked)
{
    sample_recording *recording = tracer->object.extra;
    delivery d;
    kpt_status status;
    memset(&d, 0, sizeof d);
    d.tracer = tracer;
    d.asked = asked;
    d.marks = sample_marks_now(tracer);
    if (!asked->convert) tracer->deliveries[asked->order]++;
    if (wrong("R521")) sample_record(recording);
    set_times(&d);
    put_in_order(&d);
    status = send_all(&d);
    if (wrong("R521")) memset(recording->text, '?', sizeof recording->text);
    return status;
}
