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
        kpti_free(env, ((kpti_loaded_chunk **)r->blocks.items)[i],
                  KPTI_CHUNKS_IN_BLOCK * sizeof(kpti_loaded_chunk));
    release(env, &r->blocks, sizeof(kpti_loaded_chunk *));
    release(env, &r->threads, sizeof(kpti_loaded_thread));
    kpti_free(env, r->slots.slots, r->slots.capacity * sizeof(kpti_thread_slot));
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

static kpt_status deliver(void *self, const kpt_delivery *delivery, kpti_error *error)
{
    kpti_loaded *r = self;
    kpti_recording recording = {r->tracks,
                                r->threads.count,
                                r->runs.items,
                                r->runs.count,
                                r->names.count,
                                describe,
                                r,
                                r->min_duration_ns,
                                r->cross_thread_ends.items,
                                r->cross_thread_ends.count};
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
    *out = r->stats;
    out->struct_size = sizeof *out;
    out->bytes_held = 0;
    if (r->whole) return;
    out->events = out->events_dropped = 0;
    for (uint64_t i = 0; i < r->chunk_count; i++) {
        const kpti_loaded_chunk *chunk = kpti_loaded_chunk_at(r, i);
        if (chunk->thread == KPT_CHUNK_TABLE) continue;
        out->events += chunk->chunk.count;
        out->events_dropped += chunk->chunk.dropped_before;
    }
    out->threads = r->threads.count;
}

static kpt_status get_chunks(void *self, const kpt_chunk_sink *sink, kpti_error *error)
{
    const kpti_loaded *r = self;
    if (!sink)
        return kpti_fail(error, KPT_E_INVALID,
                         "get_chunks: sink is NULL, and a loaded recording has no chunk sink");
    for (uint64_t i = 0; i < r->chunk_count; i++) {
        kpt_chunk chunk;
        kpt_status status = KPT_OK;
        kpti_loaded_chunk_read(r, i, &chunk);
        if (chunk.thread != KPT_CHUNK_TABLE || sink->flags & KPT_CHUNKS_WHOLE)
            status = sink->sealed(sink->chunk_ctx, &chunk);
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
