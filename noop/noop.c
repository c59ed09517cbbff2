#include "noop/noop.h"

/* The no-ops keep no data, so an object needs no self, with two exceptions. The self of a tracer
 * records whether the tracer has a chunk sink. The self of a traceback object is the env, from
 * which it allocates empty spans. */
static kpt_status nothing(void *self, kpti_error *error)
{
    (void)self;
    (void)error;
    return KPT_OK;
}

static kpt_status no_file(void *self, const char *path, kpti_error *error)
{
    (void)path;
    return nothing(self, error);
}

static void gone(void *self)
{
    (void)self;
}

static kpt_status make_tracer(const kpti_env *env, const kpt_tracer_args *args, void **self,
                              kpti_error *error)
{
    static char with_sink;
    (void)env;
    *self = args->chunk_sink ? &with_sink : NULL;
    return nothing(NULL, error);
}

static kpt_status deliver_nothing(void *self, const kpt_delivery *delivery, kpti_error *error)
{
    (void)delivery;
    return nothing(self, error);
}

static void no_stats(void *self, kpt_stats *out)
{
    (void)self;
    (void)out; /* already zero */
}

static void no_mark(void *self, uint32_t what, uint64_t number)
{
    (void)self;
    (void)what;
    (void)number;
}

static kpt_status no_chunks(void *self, const kpt_chunk_sink *sink, kpti_error *error)
{
    if (!sink && !self)
        return kpti_fail(error, KPT_E_INVALID,
                         "get_chunks: sink is NULL, and the tracer was made without a chunk sink");
    return nothing(self, error);
}

const kpti_tracer_impl kpti_noop_tracer = {
    .make = make_tracer,
    .stop = nothing,
    .restart = nothing,
    .register_gc_callback = nothing,
    .deliver = deliver_nothing,
    .get_stats = no_stats,
    .mark = no_mark,
    .get_chunks = no_chunks,
    .forked = gone,
    .destroy = gone,
};

static kpt_status make_memory(const kpti_env *env, const kpt_memory_args *args, void **self,
                              kpti_error *error)
{
    (void)env;
    (void)args;
    *self = NULL;
    return nothing(NULL, error);
}

static void not_reported(void *self, const kpt_memory_report *report)
{
    (void)self;
    (void)report;
}

static kpt_status not_streamed(void *self, kpt_memory_sink_fn sink, void *sink_ctx,
                               kpti_error *error)
{
    (void)self;
    (void)sink;
    (void)sink_ctx;
    (void)error;
    return KPT_OK;
}

const kpti_memory_impl kpti_noop_memory = {
    .make = make_memory,
    .start = nothing,
    .stop = nothing,
    .export_memory_history = no_file,
    .report = not_reported,
    .stream = not_streamed,
    .forked = gone,
    .destroy = gone,
};

static kpt_status make_observer(const kpti_env *env, const kpt_observer_args *args, void **self,
                                kpti_error *error)
{
    (void)env;
    (void)args;
    *self = NULL;
    return nothing(NULL, error);
}

static kpt_status not_recorded(void *self, const kpt_op *op, uint64_t *op_id)
{
    (void)self;
    (void)op;
    (void)op_id; /* already 0 */
    return KPT_OK;
}

static kpt_status not_ended(void *self, uint64_t op_id, const kpt_op *op, kpt_str error)
{
    (void)self;
    (void)op_id;
    (void)op;
    (void)error;
    return KPT_OK;
}

static void no_observer_stats(void *self, kpt_observer_stats *out)
{
    (void)self;
    (void)out; /* already zero */
}

static kpt_status not_recovered(void *self, const char *journal, const char *path,
                                kpti_error *error)
{
    (void)self;
    (void)journal;
    (void)path;
    return kpti_fail(error, KPT_E_UNSUPPORTED, "recover: a no-op observer can't recover a journal");
}

static kpt_tape *no_tape(void *self)
{
    (void)self;
    return NULL;
}

const kpti_observer_impl kpti_noop_observer = {
    .make = make_observer,
    .open = no_file,
    .start = nothing,
    .stop = nothing,
    .close = nothing,
    .begin_op = not_recorded,
    .end_op = not_ended,
    .get_stats = no_observer_stats,
    .recover = not_recovered,
    .tape = no_tape,
    .forked = gone,
    .destroy = gone,
};

static kpt_status make_tracebacks(const kpti_env *env, const kpt_tracebacks_args *args, void **self,
                                  kpti_error *error)
{
    (void)args;
    *self = (void *)env;
    return nothing(NULL, error);
}

static void gather_nothing(void *self, uint32_t what, uint32_t depth, kpt_traceback *out)
{
    (void)self;
    (void)depth;
    *out = (kpt_traceback){0};
    if (what & KPT_GATHER_PYTHON) out->flags = KPT_TRACEBACK_NO_PYTHON;
}

static void not_counted(void *self, const kpt_traceback *tracebacks, uint64_t count)
{
    (void)self;
    (void)tracebacks;
    (void)count;
}

static void empty_again(void *self, kpt_traceback *tracebacks, uint64_t count)
{
    (void)self;
    if (count) memset(tracebacks, 0, count * sizeof *tracebacks);
}

/* Symbolizes every traceback to an empty span. */
static kpt_status symbolize_nothing(void *self, const kpt_traceback *tracebacks, uint64_t count,
                                    kpt_symbols_fn sink, void *sink_ctx, kpti_error *error)
{
    const uint64_t bytes = count * sizeof(kpt_symbol_span);
    kpt_symbol_span *spans = NULL;
    kpt_symbols symbols;
    kpt_status status;
    (void)tracebacks;
    if (count > SIZE_MAX / sizeof *spans || (count && !(spans = kpti_alloc(self, bytes))))
        return kpti_fail(error, KPT_E_MEMORY, "no memory for %llu empty spans",
                         (unsigned long long)count);
    KPT_INIT(&symbols);
    symbols.symbol_stride = sizeof(kpt_symbol);
    symbols.spans = spans;
    symbols.span_count = count;
    status = sink(sink_ctx, &symbols);
    kpti_free(self, spans, bytes);
    return status;
}

static uint64_t no_frames(void *self, const kpt_traceback *traceback, uint32_t *out, uint64_t room)
{
    (void)self;
    (void)traceback;
    (void)out;
    (void)room;
    return 0;
}

static kpt_status never_given(void *self, const uint32_t *frames, uint64_t count,
                              kpt_symbols_fn sink, void *sink_ctx, kpti_error *error)
{
    if (count)
        return kpti_fail(error, KPT_E_INVALID,
                         "symbolize_frames: get_frames never returned the number %u", frames[0]);
    return symbolize_nothing(self, NULL, 0, sink, sink_ctx, error);
}

static uint64_t none_dead(void *self, uint64_t max)
{
    (void)self;
    (void)max;
    return 0;
}

static void no_traceback_stats(void *self, kpt_traceback_stats *out)
{
    (void)self;
    (void)out; /* already zero */
}

const kpti_tracebacks_impl kpti_noop_tracebacks = {
    .make = make_tracebacks,
    .gather = gather_nothing,
    .retain = not_counted,
    .release = empty_again,
    .symbolize = symbolize_nothing,
    .get_frames = no_frames,
    .symbolize_frames = never_given,
    .free_dead = none_dead,
    .get_stats = no_traceback_stats,
    .destroy = gone,
};

static kpt_status make_gpu(const kpti_env *env, const kpt_gpu_args *args, void **self,
                           kpti_error *error)
{
    (void)env;
    (void)args;
    *self = NULL;
    return nothing(NULL, error);
}

/* Calls the sink at least once, as the real tracer does, so that a host needs no separate path. */
static kpt_status collect_nothing(void *self, kpt_gpu_batch_fn sink, void *sink_ctx,
                                  kpti_error *error)
{
    kpt_gpu_batch batch;
    kpt_status status;
    (void)self;
    KPT_INIT(&batch);
    batch.event_stride = sizeof(kpt_gpu_event);
    batch.device_stride = sizeof(kpt_gpu_device);
    batch.name_stride = sizeof(kpt_gpu_name);
    status = sink(sink_ctx, &batch);
    if (status != KPT_OK)
        return kpti_fail(error, status, "the sink returned %s", kpt_status_name(status));
    return KPT_OK;
}

static void no_gpu_stats(void *self, kpt_gpu_stats *out)
{
    (void)self;
    (void)out; /* already contains the plugin's state */
}

const kpti_gpu_impl kpti_noop_gpu = {
    .make = make_gpu,
    .start = nothing,
    .stop = nothing,
    .collect = collect_nothing,
    .get_stats = no_gpu_stats,
    .forked = gone,
    .destroy = gone,
};
