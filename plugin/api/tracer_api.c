/* tracer_api.c: the tracer as hosts see it. It checks the state and the arguments of each call, then calls the
 * implementation. States and legal calls are those of kpt_tracer.h. */
#include "plugin/api/tracer_api.h"

#include "noop/noop.h"
#include "plugin/api/memory_api.h"
#include "plugin/api/observer_api.h"
#include "plugin/api/operator_api.h"
#include "plugin/objects/sink_wrapper.h"
#include "plugin/objects/struct_size.h"

enum {
    ALL_FLAGS =
        KPT_TRACE_NO_C_CALLS | KPT_TRACE_ALL_CALLABLES | KPT_TRACE_THIS_THREAD | KPT_TRACE_TASKS
};
enum { MAX_TOOL_ID = 5, MAX_PERMILLE = 1000 };

static kpt_status begin(kpti_call *call, kpt_handle self, kpti_object **object,
                        const kpti_tracer_impl **impl)
{
    kpt_status status;
    *object = NULL;
    *impl = NULL;
    if (kpti_sink_is_inside(kpti_handle_peek(self, &kpti_tracer_kind))) {
        kpti_sink_refuse(self);
        return KPT_E_BUSY;
    }
    status = kpti_call_begin(call, self, &kpti_tracer_kind);
    *object = call->object;
    *impl = status == KPT_OK ? (*object)->impl : NULL;
    return status;
}

static kpt_status stop(kpt_handle self)
{
    kpti_call call;
    kpti_object *object;
    const kpti_tracer_impl *impl;
    kpt_status status = begin(&call, self, &object, &impl);
    if (status != KPT_OK) return status;
    if (object->ended_by_fork)
        object->ended_by_fork = 0;
    else if (object->state != KPT_STATE_RUNNING)
        status = kpti_fail(&call.error, KPT_E_STATE, "stop: the tracer is stopped already");
    else
        status = impl->stop(object->self, &call.error);
    object->state = KPT_STATE_STOPPED;
    return kpti_call_leave(&call, status);
}

static kpt_status restart(kpt_handle self)
{
    kpti_call call;
    kpti_object *object;
    const kpti_tracer_impl *impl;
    kpt_status status = begin(&call, self, &object, &impl);
    if (status != KPT_OK) return status;
    if (object->state == KPT_STATE_RUNNING)
        status = kpti_fail(&call.error, KPT_E_STATE, "restart: the tracer is running");
    else
        status = impl->restart(object->self, &call.error);
    if (status == KPT_OK) {
        object->state = KPT_STATE_RUNNING;
        object->ended_by_fork = 0;
    }
    return kpti_call_leave(&call, status);
}

static kpt_status register_gc_callback(kpt_handle self)
{
    kpti_call call;
    kpti_object *object;
    const kpti_tracer_impl *impl;
    kpt_status status = begin(&call, self, &object, &impl);
    if (status != KPT_OK) return status;
    return kpti_call_leave(&call, impl->register_gc_callback(object->self, &call.error));
}

static kpt_status take_delivery(kpt_delivery *local, const kpt_delivery *delivery,
                                kpti_error *error)
{
    kpt_status status = kpti_size_read(local, sizeof *local, delivery, KPT_DELIVERY_V1_SIZE);
    if (status != KPT_OK)
        return kpti_fail(error, status,
                         "delivery is NULL, or its struct_size below the one in ABI 1.0");
    if (!local->sink) return kpti_fail(error, KPT_E_INVALID, "delivery.sink is NULL");
    if (local->flags & ~(uint32_t)(KPT_DELIVER_MARKED | KPT_DELIVER_POINTS | KPT_DELIVER_PARTS |
                                   KPT_DELIVER_RANGES | KPT_DELIVER_INPUTS) ||
        local->order > KPT_ORDER_START)
        return kpti_fail(error, KPT_E_UNSUPPORTED, "delivery has an unknown flag or order");
    if (local->flags & KPT_DELIVER_POINTS && local->order == KPT_ORDER_START)
        return kpti_fail(error, KPT_E_UNSUPPORTED,
                         "KPT_DELIVER_POINTS can't be used with KPT_ORDER_START");
    if (local->flags & KPT_DELIVER_MARKED && local->order == KPT_ORDER_TIME)
        return kpti_fail(error, KPT_E_UNSUPPORTED,
                         "KPT_DELIVER_MARKED can't be used with KPT_ORDER_TIME: a call may be "
                         "marked after it began");
    return KPT_OK;
}

/* The body of get_events and snapshot. Only snapshot is allowed while the tracer runs. */
static kpt_status deliver(kpt_handle self, const kpt_delivery *delivery, int while_running)
{
    kpti_call call;
    kpti_object *object;
    const kpti_tracer_impl *impl;
    kpt_delivery local;
    kpt_status status = begin(&call, self, &object, &impl);
    if (status != KPT_OK) return status;
    if (object->state == KPT_STATE_RUNNING && !while_running)
        status = kpti_fail(&call.error, KPT_E_STATE,
                           "get_events: the tracer is running: stop it first, or call snapshot");
    else
        status = take_delivery(&local, delivery, &call.error);
    if (status == KPT_OK) {
        status = impl->deliver(object->self, &local, &call.error);
        if (status != KPT_OK && !call.error.text[0])
            (void)kpti_fail(&call.error, status, "the sink ended the delivery");
    }
    return kpti_call_leave(&call, status);
}

static kpt_status get_events(kpt_handle self, const kpt_delivery *delivery)
{
    return deliver(self, delivery, 0);
}

static kpt_status snapshot(kpt_handle self, const kpt_delivery *delivery)
{
    return deliver(self, delivery, 1);
}

static kpt_status get_stats(kpt_handle self, kpt_stats *out)
{
    kpti_call call;
    kpti_object *object;
    const kpti_tracer_impl *impl;
    kpt_stats stats;
    kpt_status status = begin(&call, self, &object, &impl);
    if (status != KPT_OK) return status;
    status = kpti_size_check(out, KPT_STATS_V1_SIZE);
    if (status != KPT_OK) {
        status = kpti_fail(&call.error, status, "get_stats: out is NULL or too small");
    } else {
        KPT_INIT(&stats);
        impl->get_stats(object->self, &stats);
        stats.state = object->state;
        kpti_size_write(out, &stats, sizeof stats);
    }
    return kpti_call_leave(&call, status);
}

/* Called for every operator of the host, so it only peeks. */
static kpt_status mark(kpt_handle self, uint32_t what, uint64_t number)
{
    kpti_object *object = kpti_handle_peek(self, &kpti_tracer_kind);
    if (!object) return KPT_E_HANDLE;
    if (what < KPT_MARK_POINT || what > KPT_MARK_END) return KPT_E_INVALID;
    ((const kpti_tracer_impl *)object->impl)->mark(object->self, what, number);
    return KPT_OK;
}

/* Makes a complete, checked copy of the host's sink. */
static kpt_status take_sink(kpt_chunk_sink *local, const kpt_chunk_sink *sink, kpti_error *error)
{
    kpt_status status = kpti_size_read(local, sizeof *local, sink, KPT_CHUNK_SINK_V1_SIZE);
    if (status != KPT_OK)
        return kpti_fail(error, status, "chunk_sink's struct_size is below the one in ABI 1.0");
    if (local->flags & ~(uint32_t)KPT_CHUNKS_WHOLE)
        return kpti_fail(error, KPT_E_UNSUPPORTED, "chunk_sink has an unknown flag");
    if (!local->sealed) return kpti_fail(error, KPT_E_INVALID, "chunk_sink.sealed is NULL");
    return KPT_OK;
}

static kpt_status get_chunks(kpt_handle self, const kpt_chunk_sink *sink)
{
    kpti_call call;
    kpti_object *object;
    const kpti_tracer_impl *impl;
    kpt_chunk_sink local;
    kpt_status status = begin(&call, self, &object, &impl);
    if (status != KPT_OK) return status;
    if (sink) status = take_sink(&local, sink, &call.error);
    if (status == KPT_OK)
        status = impl->get_chunks(object->self, sink ? &local : NULL, &call.error);
    return kpti_call_leave(&call, status);
}

static kpt_status get_extension(kpt_handle self, kpt_str name, void *out)
{
    kpti_call call;
    kpti_object *object;
    const kpti_tracer_impl *impl;
    kpt_memory_args memory;
    kpt_observer_args observer;
    kpt_status status = begin(&call, self, &object, &impl);
    if (status != KPT_OK) return status;
    KPT_INIT(&memory);
    KPT_INIT(&observer);
    if (name.size && !name.data)
        status = kpti_fail(&call.error, KPT_E_INVALID,
                           "get_extension: name has a size, but its data is NULL");
    else if (kpt_str_is(name, KPT_EXT_MEMORY))
        status = kpti_object_make(&kpti_memory_class, object->binding->handle, &memory, out);
    else if (kpt_str_is(name, KPT_EXT_OBSERVER))
        status = kpti_object_make(&kpti_observer_class, object->binding->handle, &observer, out);
    else
        status =
            kpti_fail(&call.error, KPT_E_UNSUPPORTED, "the tracer has no extension of that name");
    if (status != KPT_OK && !call.error.text[0])
        (void)kpti_fail(&call.error, status, "get_extension: %s", kpt_status_name(status));
    return kpti_call_leave(&call, status);
}

static kpt_status destroy(kpt_handle self)
{
    return kpti_object_destroy(&kpti_tracer_class, self);
}

static const kpt_tracer_ops ops = {
    .struct_size = sizeof ops,
    .stop = stop,
    .restart = restart,
    .register_gc_callback = register_gc_callback,
    .get_events = get_events,
    .snapshot = snapshot,
    .get_stats = get_stats,
    .last_error = kpti_handle_last_error,
    .get_extension = get_extension,
    .destroy = destroy,
    .mark = mark,
    .get_chunks = get_chunks,
    .name_operator = kpti_api_name_operator,
    .begin_operator = kpti_api_begin_operator,
    .end_operator = kpti_api_end_operator,
};

static const void *ops_of(const void *impl)
{
    return kpti_api_direct_ops(impl, &ops);
}

static void forked(void *object)
{
    kpti_object *o = object;
    const kpti_tracer_impl *impl = o->impl;
    if (o->state == KPT_STATE_RUNNING) o->ended_by_fork = 1;
    o->state = KPT_STATE_STOPPED;
    impl->forked(o->self);
}

const kpti_handle_kind kpti_tracer_kind = {"tracer", forked};

/* Copies element I of the host's array, whose stride may be smaller or greater than SIZE. Fields that the
 * element lacks are zero. */
static void element(void *local, uint32_t size, const void *array, uint32_t i, uint32_t stride)
{
    memset(local, 0, size);
    memcpy(local, (const char *)array + (size_t)i * stride, size < stride ? size : stride);
}

static kpt_status check_filters(const kpt_tracer_args *args, kpti_error *error)
{
    kpt_status status = kpti_size_check_array(args->filters, args->filter_count,
                                              args->filter_stride, KPT_FILTER_V1_SIZE);
    if (status != KPT_OK)
        return kpti_fail(error, status, "filters is NULL, or its stride too small");
    for (uint32_t i = 0; i < args->filter_count; i++) {
        kpt_filter f;
        element(&f, sizeof f, args->filters, i, args->filter_stride);
        if (f.action < KPT_FILTER_INCLUDE || f.action > KPT_FILTER_EXCLUDE ||
            f.match < KPT_MATCH_FILE_PREFIX || f.match > KPT_MATCH_FILE_GLOB)
            return kpti_fail(error, KPT_E_UNSUPPORTED, "filter %u has an unknown action or match",
                             i);
        if (!f.pattern.data || !f.pattern.size)
            return kpti_fail(error, KPT_E_INVALID, "filter %u has an empty pattern", i);
    }
    return KPT_OK;
}

static kpt_status check_watches(const kpti_env *env, const kpt_tracer_args *args, kpti_error *error)
{
    kpt_status status = kpti_size_check_array(args->watches, args->watch_count, args->watch_stride,
                                              KPT_WATCH_V1_SIZE);
    if (status != KPT_OK)
        return kpti_fail(error, status, "watches is NULL, or its stride too small");
    if (args->watch_count && !env->host.on_watched_call)
        return kpti_fail(error, KPT_E_INVALID,
                         "args has watches, but the host's on_watched_call is NULL");
    for (uint32_t i = 0; i < args->watch_count; i++) {
        kpt_watch w;
        element(&w, sizeof w, args->watches, i, args->watch_stride);
        if (!w.code) return kpti_fail(error, KPT_E_INVALID, "watch %u has no code object", i);
    }
    return KPT_OK;
}

static kpt_status check_chunk_sink(kpti_make_args *args, kpti_error *error)
{
    kpt_status status;
    if (!args->of.tracer.chunk_sink) return KPT_OK;
    status = take_sink(&args->chunk_sink, args->of.tracer.chunk_sink, error);
    if (status == KPT_OK) args->of.tracer.chunk_sink = &args->chunk_sink;
    return status;
}

static kpt_status check(const kpti_env *env, kpti_make_args *args, kpti_error *error)
{
    const kpt_tracer_args *a = &args->of.tracer;
    kpt_status status;
    if (a->flags & ~(uint32_t)ALL_FLAGS)
        return kpti_fail(error, KPT_E_UNSUPPORTED, "args has unknown flags: 0x%x", a->flags);
    if (a->on_full > KPT_FULL_RING)
        return kpti_fail(error, KPT_E_UNSUPPORTED, "args.on_full %u is unknown", a->on_full);
    if (a->tool_id > MAX_TOOL_ID)
        return kpti_fail(error, KPT_E_INVALID, "tool_id %u is not between 0 and %d", a->tool_id,
                         MAX_TOOL_ID);
    if (a->overhead_permille > MAX_PERMILLE)
        return kpti_fail(error, KPT_E_INVALID, "overhead_permille %u is above %d",
                         a->overhead_permille, MAX_PERMILLE);
    status = check_filters(a, error);
    if (status == KPT_OK) status = check_watches(env, a, error);
    if (status == KPT_OK) status = check_chunk_sink(args, error);
    return status;
}

static kpt_status call_factory(kpt_any_fn make, void *make_ctx, const kpti_make_args *args,
                               kpti_made *out)
{
    kpt_tracer made;
    kpt_status status;
    KPT_INIT(&made);
    status = ((kpt_tracer_make_fn)make)(make_ctx, &args->of.tracer, &made);
    *out = (kpti_made){sizeof *out, made.flags, made.ops, made.self};
    return status;
}

static kpt_status call_impl(const void *impl, const kpti_env *env, const kpti_make_args *args,
                            kpti_object *object, kpti_error *error)
{
    kpt_tracer_args own = args->of.tracer;
    kpt_chunk_sink around;
    if (own.chunk_sink) {
        object->sink = args->chunk_sink;
        around = kpti_sink_around(object);
        own.chunk_sink = &around;
    }
    return ((const kpti_tracer_impl *)impl)->make(env, &own, &object->self, error);
}

static void destroy_impl(const void *impl, void *self)
{
    ((const kpti_tracer_impl *)impl)->destroy(self);
}

static const void *pick(const kpti_backend *backend)
{
    return backend->tracer;
}

_Static_assert(sizeof(kpt_tracer) == sizeof(kpti_made),
               "kpti_made is written to hosts' kpt_tracer");

const kpti_object_class kpti_tracer_class = {
    .kind = &kpti_tracer_kind,
    .factory_kind = KPT_FACTORY_TRACER,
    .first_state = KPT_STATE_RUNNING,
    .args_size = sizeof(kpt_tracer_args),
    .args_v1_size = KPT_TRACER_ARGS_V1_SIZE,
    .ops = &ops,
    .ops_v1_size = KPT_TRACER_OPS_V1_SIZE,
    .ops_of = ops_of,
    .noop = &kpti_noop_tracer,
    .pick = pick,
    .check = check,
    .call_factory = call_factory,
    .call_impl = call_impl,
    .destroy = destroy_impl,
};
