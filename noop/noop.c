#include "noop.h"

/* Nothing is kept, so no object needs a self; a tracer's tells whether it has a sink of chunks. */
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
    (void)out; /* zero already */
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
        return kpti_fail(error, KPT_E_INVALID, "the tracer was made without a sink");
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

const kpti_memory_impl kpti_noop_memory = {
    .make = make_memory,
    .start = nothing,
    .stop = nothing,
    .export_memory_history = no_file,
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

static uint64_t not_recorded(void *self, const kpt_op *op)
{
    (void)self;
    (void)op;
    return 0;
}

static void not_ended(void *self, uint64_t op_id, const kpt_op *op, kpt_str error)
{
    (void)self;
    (void)op_id;
    (void)op;
    (void)error;
}

const kpti_observer_impl kpti_noop_observer = {
    .make = make_observer,
    .open = no_file,
    .start = nothing,
    .stop = nothing,
    .close = nothing,
    .begin_op = not_recorded,
    .end_op = not_ended,
    .forked = gone,
    .destroy = gone,
};
