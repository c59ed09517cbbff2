#include "loaded.h"

#include "deliver.h"
#include "chunk_table.h"

/* Far more than there are: what a damaged table can make us take is bounded. */
enum { MOST_THREADS = 1 << 22, MOST_RUNS = 1 << 20 };

/* An array that grows. */
typedef struct list {
    void *items;
    uint32_t count;
    uint32_t room;
} list;

/* A thread, and where its next chunk goes. */
typedef struct thread {
    kpti_track track;
    kpti_chunk *last;
} thread;

typedef struct loaded {
    const kpti_env *env;
    list chunks;  /* of kpt_chunk, as they came */
    list heads;   /* of kpti_chunk *, by block: see take_head */
    list threads; /* of thread */
    list runs;    /* of kpti_run */
    list names;   /* of kpti_function_view */
    kpti_clock_point first_point;
    kpti_clock_point last_point;
    uint32_t points;
    uint32_t head_count; /* taken of the last block of heads */
    int whole;           /* the counters that come at the end are there */
    uint64_t last_ticks; /* of all chunks */
    uint64_t min_duration_ns;
    kpt_stats stats;
} loaded;

enum { HEADS_IN_BLOCK = 1024 };

/* --- arrays ----------------------------------------------------------------------------------- */

/* Makes COUNT items of SIZE bytes, the new ones zeroes. */
static int extend(const kpti_env *env, list *l, uint32_t count, size_t size)
{
    uint32_t room = l->room ? l->room : 64;
    void *grown;
    if (count > l->room) {
        while (room < count)
            room *= 2;
        grown = kpti_alloc(env, room * size);
        if (!grown) return 0;
        if (l->count) memcpy(grown, l->items, l->count * size);
        kpti_free(env, l->items, l->room * size);
        l->items = grown;
        l->room = room;
    }
    if (count > l->count) l->count = count;
    return 1;
}

static void release(const kpti_env *env, list *l, size_t size)
{
    kpti_free(env, l->items, l->room * size);
}

static thread *thread_at(const loaded *r, uint32_t index)
{
    return (thread *)r->threads.items + index;
}

/* The thread INDEX, which may be new; NULL: no memory, or too many. */
static thread *reach_thread(loaded *r, uint32_t index)
{
    if (index >= MOST_THREADS || !extend(r->env, &r->threads, index + 1, sizeof(thread)))
        return NULL;
    return thread_at(r, index);
}

/* A kpti_chunk, zeroes. They never move, as they are linked. */
static kpti_chunk *take_head(loaded *r)
{
    kpti_chunk **blocks = r->heads.items;
    if (!r->heads.count || r->head_count == HEADS_IN_BLOCK) {
        kpti_chunk *block = kpti_alloc(r->env, HEADS_IN_BLOCK * sizeof *block);
        if (!block) return NULL;
        if (!extend(r->env, &r->heads, r->heads.count + 1, sizeof block)) {
            kpti_free(r->env, block, HEADS_IN_BLOCK * sizeof *block);
            return NULL;
        }
        blocks = r->heads.items;
        blocks[r->heads.count - 1] = block;
        r->head_count = 0;
    }
    return &blocks[r->heads.count - 1][r->head_count++];
}

/* --- tables ----------------------------------------------------------------------------------- */

static kpt_status damaged(kpti_error *error, const char *what)
{
    return kpti_fail(error, KPT_E_INVALID, "the recording is damaged: %s", what);
}

static kpt_status no_memory(kpti_error *error)
{
    return kpti_fail(error, KPT_E_MEMORY, "no memory to load the recording");
}

static kpt_status take_run(loaded *r, const kpti_section *section, kpti_error *error)
{
    kpti_run run;
    uint32_t number;
    if (!kpti_section_run(section, &number, &run) || number >= MOST_RUNS)
        return damaged(error, "a run makes no sense");
    if (!extend(r->env, &r->runs, number + 1, sizeof run)) return no_memory(error);
    ((kpti_run *)r->runs.items)[number] = run;
    return KPT_OK;
}

static kpt_status take_clock(loaded *r, const kpti_section *section, kpti_error *error)
{
    kpti_clock_point point;
    if (!kpti_section_clock(section, &point)) return damaged(error, "a time makes no sense");
    if (!r->points || point.ticks < r->first_point.ticks) r->first_point = point;
    if (!r->points || point.ticks >= r->last_point.ticks) r->last_point = point;
    r->points++;
    return KPT_OK;
}

static kpt_status take_thread(loaded *r, const kpti_section *section, kpti_error *error)
{
    kpti_track track = {0};
    uint32_t index;
    thread *t;
    if (!kpti_section_thread(section, &index, &track) || index >= MOST_THREADS)
        return damaged(error, "a thread makes no sense");
    t = reach_thread(r, index);
    if (!t) return no_memory(error);
    track.chunks = t->track.chunks;
    t->track = track;
    return KPT_OK;
}

static kpt_status take_names(loaded *r, const kpti_section *section, kpti_error *error)
{
    uint64_t at = 0;
    uint32_t first;
    uint32_t count;
    if (!kpti_section_names(section, &first, &count) || first > r->names.count)
        return damaged(error, "names are missing");
    if (!extend(r->env, &r->names, first + count, sizeof(kpti_function_view)))
        return no_memory(error);
    for (uint32_t i = 0; i < count; i++)
        if (!kpti_section_next_name(section, &at, (kpti_function_view *)r->names.items + first + i))
            return damaged(error, "a name makes no sense");
    return KPT_OK;
}

static kpt_status take_stats(loaded *r, const kpti_section *section, kpti_error *error)
{
    uint64_t min_duration_ns;
    if (!kpti_section_stats(section, &min_duration_ns, &r->stats))
        return damaged(error, "the counters make no sense");
    if (!r->min_duration_ns) r->min_duration_ns = min_duration_ns;
    r->whole = 1;
    return KPT_OK;
}

static kpt_status take_table(loaded *r, const kpt_chunk *chunk, kpti_error *error)
{
    kpti_section section;
    uint64_t at = 0;
    kpt_status status = KPT_OK;
    int more = 1;
    while (status == KPT_OK) {
        more = kpti_table_next(chunk->data, chunk->size_bytes, &at, &section);
        if (more <= 0) break;
        if (section.kind == KPTI_TABLE_RUN)
            status = take_run(r, &section, error);
        else if (section.kind == KPTI_TABLE_CLOCK)
            status = take_clock(r, &section, error);
        else if (section.kind == KPTI_TABLE_THREAD)
            status = take_thread(r, &section, error);
        else if (section.kind == KPTI_TABLE_NAMES)
            status = take_names(r, &section, error);
        else if (section.kind == KPTI_TABLE_STATS)
            status = take_stats(r, &section, error);
    }
    return more < 0 ? damaged(error, "a table is cut off") : status;
}

/* --- chunks ----------------------------------------------------------------------------------- */

static kpt_status take_events(loaded *r, const kpt_chunk *chunk, kpti_error *error)
{
    kpti_chunk *head;
    thread *t;
    if (chunk->thread >= MOST_THREADS || chunk->size_bytes / sizeof(kpti_event) > UINT32_MAX)
        return damaged(error, "a chunk makes no sense");
    t = reach_thread(r, chunk->thread);
    head = t ? take_head(r) : NULL;
    if (!head) return no_memory(error);
    head->base_ticks = chunk->first_ticks;
    head->dropped_before = chunk->dropped_before;
    head->run = chunk->run;
    head->sequence = chunk->sequence;
    head->count = head->capacity = (uint32_t)(chunk->size_bytes / sizeof(kpti_event));
    head->events = (kpti_event *)chunk->data;
    if (!t->track.os_tid) t->track.os_tid = chunk->os_tid;
    if (t->last)
        t->last->next = head;
    else
        t->track.chunks = head;
    t->last = head;
    if (chunk->last_ticks > r->last_ticks) r->last_ticks = chunk->last_ticks;
    return KPT_OK;
}

static kpt_status take_chunk(loaded *r, const kpt_chunk *chunk, kpti_error *error)
{
    if (chunk->format != KPTI_CHUNK_FORMAT)
        return kpti_fail(error, KPT_E_UNSUPPORTED,
                         "the recording has format %u, and this version of kpytrace reads %d",
                         chunk->format, KPTI_CHUNK_FORMAT);
    if (chunk->size_bytes && (!chunk->data || (uintptr_t)chunk->data % sizeof(kpti_event)))
        return kpti_fail(error, KPT_E_INVALID, "a chunk's bytes are NULL, or not aligned to 8");
    if (!extend(r->env, &r->chunks, r->chunks.count + 1, sizeof *chunk)) return no_memory(error);
    ((kpt_chunk *)r->chunks.items)[r->chunks.count - 1] = *chunk;
    return chunk->thread == KPT_CHUNK_TABLE ? take_table(r, chunk, error)
                                            : take_events(r, chunk, error);
}

static kpt_status take_all(loaded *r, const kpt_load_args *args, kpti_error *error)
{
    for (;;) {
        kpt_chunk chunk;
        kpt_status status;
        KPT_INIT(&chunk);
        status = args->next(args->next_ctx, &chunk);
        if (status == KPT_DECLINED) return KPT_OK;
        if (status != KPT_OK) return kpti_fail(error, status, "the host ended the load");
        status = take_chunk(r, &chunk, error);
        if (status != KPT_OK) return status;
    }
}

/* What a crash left out: when runs ended. Of spans it isn't known whether there are any. */
static void complete(loaded *r)
{
    kpti_run *runs = r->runs.items;
    for (uint32_t i = 0; i < r->runs.count; i++)
        if (!runs[i].stop_ticks)
            runs[i].stop_ticks = i + 1 < r->runs.count ? runs[i + 1].start_ticks : r->last_ticks;
    for (uint32_t i = 0; !r->whole && i < r->threads.count; i++)
        thread_at(r, i)->track.spans = 1;
}

/* --- the tracer ------------------------------------------------------------------------------- */

static void destroy(void *self)
{
    loaded *r = self;
    const kpti_env *env = r->env;
    for (uint32_t i = 0; i < r->heads.count; i++)
        kpti_free(env, ((kpti_chunk **)r->heads.items)[i], HEADS_IN_BLOCK * sizeof(kpti_chunk));
    release(env, &r->heads, sizeof(kpti_chunk *));
    release(env, &r->chunks, sizeof(kpt_chunk));
    release(env, &r->threads, sizeof(thread));
    release(env, &r->runs, sizeof(kpti_run));
    release(env, &r->names, sizeof(kpti_function_view));
    kpti_free(env, r, sizeof *r);
}

kpt_status kpti_loaded_make(const kpti_env *env, const kpt_load_args *args, void **self,
                            kpti_error *error)
{
    loaded *r = kpti_alloc(env, sizeof *r);
    kpt_status status;
    if (!r) return no_memory(error);
    r->env = env;
    r->min_duration_ns = args->min_duration_ns;
    status = take_all(r, args, error);
    if (status == KPT_OK && !r->points && r->threads.count)
        status = damaged(error, "nothing says what time it was");
    if (status != KPT_OK) {
        destroy(r);
        return status;
    }
    complete(r);
    *self = r;
    return KPT_OK;
}

static int describe(void *ctx, uint32_t id, kpti_function_view *out)
{
    const loaded *r = ctx;
    if (id >= r->names.count) return 0;
    *out = ((const kpti_function_view *)r->names.items)[id];
    return out->display.size || out->function.size;
}

static kpt_status deliver(void *self, const kpt_delivery *delivery, kpti_error *error)
{
    loaded *r = self;
    kpti_track *tracks = kpti_alloc(r->env, (r->threads.count + 1) * sizeof *tracks);
    kpti_recording recording = {
        tracks, r->threads.count,  r->runs.items, r->runs.count, r->names.count, describe,
        r,      r->min_duration_ns};
    kpti_clock clock;
    kpti_delivery_job job = {r->env, &recording, delivery, kpti_clock_convert, &clock, 0};
    kpt_status status;
    if (!tracks) return kpti_fail(error, KPT_E_MEMORY, "no memory to deliver");
    for (uint32_t i = 0; i < r->threads.count; i++)
        tracks[i] = thread_at(r, i)->track;
    kpti_clock_between(&r->first_point, &r->last_point, &clock);
    status = kpti_deliver(&job, error);
    r->stats.events_repaired = job.repairs;
    kpti_free(r->env, tracks, (r->threads.count + 1) * sizeof *tracks);
    return status;
}

static void get_stats(void *self, kpt_stats *out)
{
    const loaded *r = self;
    *out = r->stats;
    out->struct_size = sizeof *out;
    out->bytes_held = 0;
    if (r->whole) return;
    for (uint32_t i = 0; i < r->chunks.count; i++) {
        const kpt_chunk *chunk = (const kpt_chunk *)r->chunks.items + i;
        if (chunk->thread == KPT_CHUNK_TABLE) continue;
        out->events += chunk->size_bytes / sizeof(kpti_event);
        out->events_dropped += chunk->dropped_before;
    }
    out->threads = r->threads.count;
}

static kpt_status get_chunks(void *self, const kpt_chunk_sink *sink, kpti_error *error)
{
    const loaded *r = self;
    if (!sink) return kpti_fail(error, KPT_E_INVALID, "a loaded recording has no sink of its own");
    for (uint32_t i = 0; i < r->chunks.count; i++) {
        const kpt_chunk *chunk = (const kpt_chunk *)r->chunks.items + i;
        kpt_status status = KPT_OK;
        if (chunk->thread != KPT_CHUNK_TABLE || sink->flags & KPT_CHUNKS_WHOLE)
            status = sink->sealed(sink->chunk_ctx, chunk);
        if (status != KPT_OK) return kpti_fail(error, status, "the sink refused a chunk");
    }
    return KPT_OK;
}

static kpt_status refuse(void *self, kpti_error *error)
{
    (void)self;
    return kpti_fail(error, KPT_E_UNSUPPORTED, "a recording that was loaded can't be added to");
}

static void no_mark(void *self, uint32_t what, uint64_t number)
{
    (void)self;
    (void)what;
    (void)number;
}

static void forked(void *self)
{
    (void)self; /* what was loaded is the child's as well */
}

const kpti_tracer_impl kpti_loaded_tracer = {
    .stop = refuse,
    .restart = refuse,
    .register_gc_callback = refuse,
    .deliver = deliver,
    .get_stats = get_stats,
    .mark = no_mark,
    .get_chunks = get_chunks,
    .forked = forked,
    .destroy = destroy,
};
