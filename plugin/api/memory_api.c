/* memory_api.c: the memory tracer as hosts see it. A repeated stop does nothing. A repeated start changes no
 * state, but the implementation is called again, since there may be more to record by then. Control calls go
 * one at a time through the handle table. report, which runs on every allocation of the host, only peeks. */
#include "plugin/api/memory_api.h"

#include <limits.h>

#include "noop/noop.h"
#include "plugin/objects/struct_size.h"

static const kpti_handle_kind kind;

static kpt_status turn(kpt_handle self, uint32_t state)
{
    kpti_call call;
    kpt_status status = kpti_call_begin(&call, self, &kind);
    kpti_object *object = call.object;
    const kpti_memory_impl *impl;
    if (status != KPT_OK) return status;
    impl = object->impl;
    if (object->state != state || state == KPT_STATE_RUNNING)
        status = (state == KPT_STATE_RUNNING ? impl->start : impl->stop)(object->self, &call.error);
    if (status == KPT_OK) object->state = state;
    return kpti_call_leave(&call, status);
}

static kpt_status start(kpt_handle self)
{
    return turn(self, KPT_STATE_RUNNING);
}

static kpt_status stop(kpt_handle self)
{
    return turn(self, KPT_STATE_STOPPED);
}

static kpt_status export_memory_history(kpt_handle self, kpt_str path)
{
    kpti_call call;
    kpt_status status = kpti_call_begin(&call, self, &kind);
    kpti_object *object = call.object;
    const kpti_memory_impl *impl;
    char local[PATH_MAX];
    if (status != KPT_OK) return status;
    impl = object->impl;
    status = kpti_check_path(path, local, sizeof local, &call.error);
    if (status == KPT_OK) status = impl->export_memory_history(object->self, local, &call.error);
    return kpti_call_leave(&call, status);
}

static kpt_status stream(kpt_handle self, kpt_memory_sink_fn sink, void *sink_ctx)
{
    kpti_call call;
    kpt_status status = kpti_call_begin(&call, self, &kind);
    kpti_object *object = call.object;
    if (status != KPT_OK) return status;
    status = sink ? ((const kpti_memory_impl *)object->impl)
                        ->stream(object->self, sink, sink_ctx, &call.error)
                  : kpti_fail(&call.error, KPT_E_INVALID, "stream: there is no sink");
    return kpti_call_leave(&call, status);
}

static int has_bytes(kpt_str text)
{
    return text.data || !text.size;
}

static kpt_status report(kpt_handle self, const kpt_memory_report *report)
{
    kpti_object *object = kpti_handle_peek(self, &kind);
    kpt_memory_report local;
    kpt_status status;
    if (!object) return KPT_E_HANDLE;
    status = kpti_size_read(&local, sizeof local, report, KPT_MEMORY_REPORT_V1_SIZE);
    if (status != KPT_OK) return status;
    if (local.action != KPT_REPORT_ALLOC && local.action != KPT_REPORT_FREE)
        return KPT_E_UNSUPPORTED;
    if (!has_bytes(local.category) || !has_bytes(local.owner)) return KPT_E_INVALID;
    ((const kpti_memory_impl *)object->impl)->report(object->self, &local);
    return KPT_OK;
}

static kpt_status destroy(kpt_handle self)
{
    return kpti_object_destroy(&kpti_memory_class, self);
}

static const kpt_memory_ops ops = {
    .struct_size = sizeof ops,
    .start = start,
    .stop = stop,
    .export_memory_history = export_memory_history,
    .last_error = kpti_handle_last_error,
    .destroy = destroy,
    .report = report,
    .stream = stream,
};

static void forked(void *object)
{
    kpti_object *o = object;
    o->state = KPT_STATE_STOPPED;
    ((const kpti_memory_impl *)o->impl)->forked(o->self);
}

static const kpti_handle_kind kind = {"memory tracer", forked};

static kpt_status check(const kpti_env *env, kpti_make_args *args, kpti_error *error)
{
    const kpt_memory_args *a = &args->of.memory;
    (void)env;
    if (a->flags || a->domains)
        return kpti_fail(error, KPT_E_UNSUPPORTED, "args has unknown flags or domains");
    return KPT_OK;
}

static kpt_status call_factory(kpt_any_fn make, void *make_ctx, const kpti_make_args *args,
                               kpti_made *out)
{
    kpt_memory_tracer made;
    kpt_status status;
    KPT_INIT(&made);
    status = ((kpt_memory_make_fn)make)(make_ctx, &args->of.memory, &made);
    *out = (kpti_made){sizeof *out, made.flags, made.ops, made.self};
    return status;
}

static kpt_status call_impl(const void *impl, const kpti_env *env, const kpti_make_args *args,
                            kpti_object *object, kpti_error *error)
{
    return ((const kpti_memory_impl *)impl)->make(env, &args->of.memory, &object->self, error);
}

static void destroy_impl(const void *impl, void *self)
{
    ((const kpti_memory_impl *)impl)->destroy(self);
}

static const void *pick(const kpti_backend *backend)
{
    return backend->memory;
}

_Static_assert(sizeof(kpt_memory_tracer) == sizeof(kpti_made), "kpti_made is written to it");

const kpti_object_class kpti_memory_class = {
    .kind = &kind,
    .factory_kind = KPT_FACTORY_MEMORY,
    .first_state = KPT_STATE_STOPPED,
    .args_size = sizeof(kpt_memory_args),
    .args_v1_size = KPT_MEMORY_ARGS_V1_SIZE,
    .ops = &ops,
    .ops_v1_size = KPT_MEMORY_OPS_V1_SIZE,
    .noop = &kpti_noop_memory,
    .pick = pick,
    .check = check,
    .call_factory = call_factory,
    .call_impl = call_impl,
    .destroy = destroy_impl,
};
