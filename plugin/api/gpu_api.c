/* gpu_api.c: the extension KPT_EXT_GPU: GPU tracers as hosts see them. The implementation is a separate library
 * beside the plugin. It is opened when the first GPU tracer is made, so a process without GPU tracing does not
 * pay for it. */
#include "plugin/api/gpu_api.h"

#include <dlfcn.h>
#include <limits.h>
#include <unistd.h>

#include "noop/noop.h"
#include "plugin/base/verbose_log.h"
#include "plugin/objects/struct_size.h"

#define LIBRARY "libkpytrace_gpu.so"

/* The state before start, and the state from start to stop. After start, only the implementation knows which
 * KPT_GPU_* state applies. */
enum { NOT_STARTED = 0, STARTED = KPT_GPU_WAITING };

static const kpti_handle_kind kind;

/* Begins a control call that is legal only in STATE. */
static kpt_status begin_in(kpti_call *call, kpt_handle self, uint32_t state, const char *what)
{
    kpt_status status = kpti_call_begin(call, self, &kind);
    const kpti_object *object = call->object;
    if (status != KPT_OK || object->state == state) return status;
    return kpti_call_leave(call, kpti_fail(&call->error, KPT_E_STATE, "%s: the GPU tracer %s", what,
                                           object->state == NOT_STARTED ? "was not started"
                                           : object->state == STARTED   ? "is recording already"
                                                                        : "has been stopped"));
}

static kpt_status start(kpt_handle self)
{
    kpti_call call;
    kpt_status status = begin_in(&call, self, NOT_STARTED, "start");
    kpti_object *object = call.object;
    if (status != KPT_OK) return status;
    status = ((const kpti_gpu_impl *)object->impl)->start(object->self, &call.error);
    if (status == KPT_OK) object->state = STARTED;
    return kpti_call_leave(&call, status);
}

static kpt_status stop(kpt_handle self)
{
    kpti_call call;
    kpt_status status = begin_in(&call, self, STARTED, "stop");
    kpti_object *object = call.object;
    if (status != KPT_OK) return status;
    if (!object->ended_by_fork)
        status = ((const kpti_gpu_impl *)object->impl)->stop(object->self, &call.error);
    object->state = KPT_GPU_STOPPED;
    return kpti_call_leave(&call, status);
}

static kpt_status collect(kpt_handle self, kpt_gpu_batch_fn sink, void *sink_ctx)
{
    kpti_call call;
    kpt_status status = kpti_call_begin(&call, self, &kind);
    kpti_object *object = call.object;
    if (status != KPT_OK) return status;
    if (sink)
        status = ((const kpti_gpu_impl *)object->impl)
                     ->collect(object->self, sink, sink_ctx, &call.error);
    else
        status = kpti_fail(&call.error, KPT_E_INVALID, "collect: sink is NULL");
    return kpti_call_leave(&call, status);
}

static kpt_status get_stats(kpt_handle self, kpt_gpu_stats *out)
{
    kpti_call call;
    kpt_gpu_stats local;
    kpt_status status = kpti_call_begin(&call, self, &kind);
    kpti_object *object = call.object;
    if (status != KPT_OK) return status;
    status = kpti_size_check(out, KPT_GPU_STATS_V1_SIZE);
    if (status == KPT_OK) {
        KPT_INIT(&local);
        local.state = object->state;
        ((const kpti_gpu_impl *)object->impl)->get_stats(object->self, &local);
        if (object->ended_by_fork) local.state = KPT_GPU_STOPPED;
        kpti_size_write(out, &local, sizeof local);
    } else {
        (void)kpti_fail(&call.error, status,
                        "get_stats: out is NULL, or its struct_size too small");
    }
    return kpti_call_leave(&call, status);
}

static kpt_status destroy(kpt_handle self)
{
    return kpti_object_destroy(&kpti_gpu_class, self);
}

static const kpt_gpu_ops ops = {
    .struct_size = sizeof ops,
    .start = start,
    .stop = stop,
    .collect = collect,
    .get_stats = get_stats,
    .last_error = kpti_handle_last_error,
    .destroy = destroy,
};

static void forked(void *object)
{
    kpti_object *o = object;
    o->ended_by_fork = o->state == STARTED;
    ((const kpti_gpu_impl *)o->impl)->forked(o->self);
}

static const kpti_handle_kind kind = {"GPU tracer", forked};

static kpt_status check(const kpti_env *env, kpti_make_args *args, kpti_error *error)
{
    kpt_gpu_args *a = &args->of.gpu;
    (void)env;
    if ((a->flags & ~(uint32_t)KPT_GPU_FEWER_CALLS) || a->spare)
        return kpti_fail(error, KPT_E_UNSUPPORTED, "args has unknown flags, or spare is not 0");
    if (!a->tracebacks) return KPT_OK;
    if (kpti_size_read(&args->gatherer, sizeof args->gatherer, a->tracebacks,
                       KPT_TRACEBACKS_V1_SIZE) != KPT_OK ||
        kpti_size_check(args->gatherer.ops, KPT_TRACEBACKS_OPS_V1_SIZE) != KPT_OK)
        return kpti_fail(error, KPT_E_SIZE,
                         "the struct_size of args.tracebacks, or of its ops, is too small");
    a->tracebacks = &args->gatherer;
    return KPT_OK;
}

static kpt_status call_impl(const void *impl, const kpti_env *env, const kpti_make_args *args,
                            kpti_object *object, kpti_error *error)
{
    return ((const kpti_gpu_impl *)impl)->make(env, &args->of.gpu, &object->self, error);
}

static void destroy_impl(const void *impl, void *self)
{
    ((const kpti_gpu_impl *)impl)->destroy(self);
}

static const void *find(const kpt_host *host, kpti_error *why)
{
    char path[PATH_MAX];
    void *library;
    kpti_gpu_entry_fn entry;
    const kpti_gpu_library *found;
    if (!kpti_path_beside_plugin(LIBRARY, path, sizeof path) || access(path, R_OK) != 0) {
        (void)kpti_fail(
            why, KPT_DECLINED,
            LIBRARY
            " is not in the plugin's folder: this kpytrace was built without CUPTI's headers");
        return NULL;
    }
    library = kpti_open_library(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        (void)kpti_fail(why, KPT_DECLINED, LIBRARY " can't be loaded: %s", dlerror());
        return NULL;
    }
    *(void **)&entry = dlsym(library, KPTI_GPU_ENTRY_NAME);
    found = entry ? entry() : NULL;
    if (!found || found->interface != KPTI_INTERFACE || strcmp(found->version, KPTI_VERSION) != 0) {
        (void)kpti_fail(why, KPT_DECLINED, "%s does not belong to kpytrace %s: reinstall kpytrace",
                        path, KPTI_VERSION);
        (void)dlclose(library);
        return NULL;
    }
    kpti_say(host, KPT_LOG_DEBUG, "gpu: opened %s", path);
    return found->gpu;
}

_Static_assert(sizeof(kpt_gpu_tracer) == sizeof(kpti_made), "kpti_made is written to it");

const kpti_object_class kpti_gpu_class = {
    .kind = &kind,
    .args_size = sizeof(kpt_gpu_args),
    .args_v1_size = KPT_GPU_ARGS_V1_SIZE,
    .ops = &ops,
    .ops_v1_size = KPT_GPU_OPS_V1_SIZE,
    .noop = &kpti_noop_gpu,
    .find = find,
    .check = check,
    .call_impl = call_impl,
    .destroy = destroy_impl,
};

static kpt_status make(kpt_handle plugin, const kpt_gpu_args *args, kpt_gpu_tracer *out)
{
    return kpti_object_make(&kpti_gpu_class, plugin, args, out);
}

const kpt_gpu_maker kpti_gpu_table = {sizeof kpti_gpu_table, 0, make};
