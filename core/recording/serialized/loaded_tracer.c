#include "core/recording/serialized/loaded_tracer.h"

#include "core/recording/delivery/deliver.h"
#include "core/recording/serialized/chunk_loader.h"

static void release(const kpti_env *env, kpti_list *l, size_t size)
{
    kpti_free(env, l->items, l->capacity * size);
}

static void destroy(void *self)
{
    kpti_loaded *r = self;
    const kpti_env *env = r->env;
    for (uint32_t i = 0; i < r->blocks.count; i++)
        kpti_free(env, ((kpti_loaded_thread **)r->blocks.items)[i],
                  KPTI_THREADS_IN_BLOCK * sizeof(kpti_loaded_thread));
    release(env, &r->blocks, sizeof(kpti_loaded_thread *));
    kpti_free(env, r->tracks, r->thread_count * sizeof *r->tracks);
    kpti_chunk_index_free(&r->chunks, env);
    kpti_loaded_free_pages(r);
    release(env, &r->runs, sizeof(kpti_run));
    release(env, &r->names, sizeof(kpti_function_view));
    release(env, &r->cross_thread_ends, sizeof(kpti_cross_thread_end));
    kpti_free(env, r, sizeof *r);
}

kpt_status kpti_loaded_make(const kpti_env *env, const kpt_load_args *args, void **self,
                            kpti_error *error)
{
    kpti_loaded *r = kpti_alloc(env, sizeof *r);
    kpt_status status;
    if (!r) return kpti_fail(error, KPT_E_MEMORY, "no memory to load the recording");
    r->env = env;
    r->min_duration_ns = args->min_duration_ns;
    status = kpti_load_all(r, args, error);
    if (status == KPT_OK)
        *self = r;
    else
        destroy(r);
    return status;
}

static int describe(void *ctx, uint32_t id, kpti_function_view *out)
{
    const kpti_loaded *r = ctx;
    if (id >= r->names.count) return 0;
    *out = ((const kpti_function_view *)r->names.items)[id];
    return out->display.size || out->function.size;
}

/* A kpti_recording_index's. */
static void read_chunk(const void *ctx, const kpti_chunk *place, kpti_chunk *out)
{
    const kpti_loaded *r = ctx;
    kpti_indexed_chunk chunk;
    kpti_chunk_index_read(&r->chunks, place, &chunk);
    *out = chunk.head;
}

static kpt_status deliver(void *self, const kpt_delivery *delivery, kpti_error *error)
{
    kpti_loaded *r = self;
    kpti_recording recording = {
        .track_count = r->thread_count,
        .runs = r->runs.items,
        .run_count = r->runs.count,
        .function_count = r->names.count,
        .describe = describe,
        .describe_ctx = r,
        .min_duration_ns = r->min_duration_ns,
        .cross_thread_ends = r->cross_thread_ends.items,
        .remote_end_count = r->cross_thread_ends.count,
        .index = {r, kpti_loaded_read_track, kpti_loaded_first_chunk, read_chunk}};
    kpti_clock clock;
    kpti_delivery_job job = {r->env, &recording, delivery, kpti_clock_convert, &clock, 0};
    kpt_status status;
    kpti_clock_between(&r->first_point, &r->last_point, &clock);
    status = kpti_deliver(&job, error);
    r->stats.events_repaired = job.repairs;
    return status;
}

static void get_stats(void *self, kpt_stats *out)
{
    const kpti_loaded *r = self;
    kpti_chunk_walk walk = {0};
    kpti_indexed_chunk at;
    *out = r->stats;
    out->struct_size = sizeof *out;
    out->bytes_held = 0;
    if (r->whole) return;
    out->events = out->events_dropped = 0;
    while (kpti_chunk_index_next(&r->chunks, &walk, &at)) {
        if (at.chunk.thread == KPT_CHUNK_TABLE) continue;
        out->events += at.head.count;
        out->events_dropped += at.head.dropped_before;
    }
    out->threads = r->thread_count;
}

static kpt_status get_chunks(void *self, const kpt_chunk_sink *sink, kpti_error *error)
{
    const kpti_loaded *r = self;
    kpti_chunk_walk walk = {0};
    kpti_indexed_chunk at;
    if (!sink)
        return kpti_fail(error, KPT_E_INVALID,
                         "get_chunks: sink is NULL, and a loaded recording has no chunk sink");
    while (kpti_chunk_index_next(&r->chunks, &walk, &at)) {
        kpt_status status = KPT_OK;
        if (at.chunk.thread != KPT_CHUNK_TABLE || sink->flags & KPT_CHUNKS_WHOLE)
            status = sink->sealed(sink->chunk_ctx, &at.chunk);
        if (status != KPT_OK)
            return kpti_fail(error, status, "get_chunks: the sink returned %s",
                             kpt_status_name(status));
    }
    return KPT_OK;
}

static kpt_status refuse(void *self, kpti_error *error)
{
    (void)self;
    return kpti_fail(error, KPT_E_UNSUPPORTED,
                     "a loaded recording is read-only: it can't record again");
}

static void no_mark(void *self, uint32_t what, uint64_t number)
{
    (void)self;
    (void)what;
    (void)number;
}

static void forked(void *self)
{
    (void)self; /* the child may use the loaded chunks as well */
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
