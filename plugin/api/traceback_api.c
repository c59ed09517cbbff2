/* traceback_api.c: the extension KPT_EXT_TRACEBACK: traceback gatherers as hosts see them. Their calls run on
 * many threads at once, so none enters the object exclusively. Each call peeks at its handle, checks its
 * arguments and calls the implementation. gather, retain and release acquire no lock in this file. */
#include "plugin/api/traceback_api.h"

#include "noop/noop.h"
#include "plugin/objects/struct_size.h"

enum { ALL_BITS = KPT_GATHER_PYTHON | KPT_GATHER_SCRIPT | KPT_GATHER_NATIVE | KPT_GATHER_WAIT };

static const kpti_handle_kind kind = {"traceback gatherer", NULL}; /* a fork needs no work here */

/* The implementation of a handle. IMPL is NULL if there is no such object. */
typedef struct target {
    const kpti_tracebacks_impl *impl;
    void *self;
} target;

static inline target look_up(kpt_handle self)
{
    const kpti_object *object = kpti_handle_peek(self, &kind);
    return object ? (target){object->impl, object->self} : (target){NULL, NULL};
}

static kpt_status refuse(kpt_handle self, const char *text)
{
    kpti_error error = {""};
    (void)kpti_fail(&error, KPT_E_INVALID, "%s", text);
    return kpti_handle_fail(self, KPT_E_INVALID, &error);
}

static kpt_status gather(kpt_handle self, uint32_t what, uint32_t depth, kpt_traceback *out)
{
    const target t = look_up(self);
    if (out) *out = (kpt_traceback){0};
    if (!t.impl) return KPT_E_HANDLE;
    if (!out) return KPT_E_INVALID;
    if (what & ~(uint32_t)ALL_BITS) return KPT_E_UNSUPPORTED;
    t.impl->gather(t.self, what, depth, out);
    return KPT_OK;
}

static kpt_status retain(kpt_handle self, const kpt_traceback *tracebacks, uint64_t count)
{
    const target t = look_up(self);
    if (!t.impl) return KPT_E_HANDLE;
    if (count && !tracebacks) return KPT_E_INVALID;
    t.impl->retain(t.self, tracebacks, count);
    return KPT_OK;
}

static kpt_status release(kpt_handle self, kpt_traceback *tracebacks, uint64_t count)
{
    const target t = look_up(self);
    if (!t.impl) return KPT_E_HANDLE;
    if (count && !tracebacks) return KPT_E_INVALID;
    t.impl->release(t.self, tracebacks, count);
    return KPT_OK;
}

/* Sets the error text for a failed call. A status that the sink returned has no text yet, so a text is made for
 * it. */
static kpt_status after(kpt_handle self, kpt_status status, kpti_error *error)
{
    if (status == KPT_OK) return status;
    if (!error->text[0])
        (void)kpti_fail(error, status, "the sink returned %s", kpt_status_name(status));
    return kpti_handle_fail(self, status, error);
}

static kpt_status symbolize(kpt_handle self, const kpt_traceback *tracebacks, uint64_t count,
                            kpt_symbols_fn sink, void *sink_ctx)
{
    const target t = look_up(self);
    kpti_error error = {""};
    if (!t.impl) return KPT_E_HANDLE;
    if (!sink) return refuse(self, "symbolize: sink is NULL");
    if (count && !tracebacks)
        return refuse(self, "symbolize: tracebacks is NULL, but count is not 0");
    return after(self, t.impl->symbolize(t.self, tracebacks, count, sink, sink_ctx, &error),
                 &error);
}

static kpt_status get_frames(kpt_handle self, const kpt_traceback *traceback, uint32_t *out,
                             uint64_t capacity, uint64_t *count)
{
    const target t = look_up(self);
    if (!t.impl) return KPT_E_HANDLE;
    if (!traceback || !count) return refuse(self, "get_frames: traceback or count is NULL");
    if (capacity && !out) return refuse(self, "get_frames: out is NULL, but capacity is not 0");
    *count = t.impl->get_frames(t.self, traceback, out, capacity);
    return KPT_OK;
}

static kpt_status symbolize_frames(kpt_handle self, const uint32_t *frames, uint64_t count,
                                   kpt_symbols_fn sink, void *sink_ctx)
{
    const target t = look_up(self);
    kpti_error error = {""};
    if (!t.impl) return KPT_E_HANDLE;
    if (!sink) return refuse(self, "symbolize_frames: sink is NULL");
    if (count && !frames)
        return refuse(self, "symbolize_frames: frames is NULL, but count is not 0");
    return after(self, t.impl->symbolize_frames(t.self, frames, count, sink, sink_ctx, &error),
                 &error);
}

/* Tracebacks are numbers and keep no object alive, so there is nothing to visit, whichever gatherer made them. */
static kpt_status traverse(kpt_handle self, const kpt_traceback *traceback, kpt_visit_fn visit,
                           void *visit_ctx)
{
    (void)visit_ctx;
    if (!look_up(self).impl) return KPT_E_HANDLE;
    if (!traceback || !visit) return refuse(self, "traverse: traceback or visit is NULL");
    return KPT_OK;
}

static kpt_status clear(kpt_handle self, kpt_traceback *traceback)
{
    if (!look_up(self).impl) return KPT_E_HANDLE;
    return traceback ? KPT_OK : refuse(self, "clear: traceback is NULL");
}

static kpt_status free_dead(kpt_handle self, uint64_t max, uint64_t *left)
{
    const target t = look_up(self);
    uint64_t still;
    if (!t.impl) return KPT_E_HANDLE;
    still = t.impl->free_dead(t.self, max);
    if (left) *left = still;
    return KPT_OK;
}

static kpt_status get_stats(kpt_handle self, kpt_traceback_stats *out)
{
    const target t = look_up(self);
    kpti_error error = {""};
    kpt_traceback_stats stats;
    kpt_status status;
    if (!t.impl) return KPT_E_HANDLE;
    status = kpti_size_check(out, KPT_TRACEBACK_STATS_V1_SIZE);
    if (status != KPT_OK) {
        (void)kpti_fail(&error, status, "get_stats: out is NULL, or its struct_size too small");
        return kpti_handle_fail(self, status, &error);
    }
    KPT_INIT(&stats);
    t.impl->get_stats(t.self, &stats);
    kpti_size_write(out, &stats, sizeof stats);
    return KPT_OK;
}

static kpt_status destroy(kpt_handle self)
{
    return kpti_object_destroy(&kpti_tracebacks_class, self);
}

static const kpt_tracebacks_ops ops = {
    .struct_size = sizeof ops,
    .gather = gather,
    .retain = retain,
    .release = release,
    .symbolize = symbolize,
    .get_frames = get_frames,
    .symbolize_frames = symbolize_frames,
    .traverse = traverse,
    .clear = clear,
    .free_dead = free_dead,
    .get_stats = get_stats,
    .last_error = kpti_handle_last_error,
    .destroy = destroy,
};

static kpt_status check(const kpti_env *env, kpti_make_args *args, kpti_error *error)
{
    (void)env;
    if (args->of.tracebacks.flags)
        return kpti_fail(error, KPT_E_UNSUPPORTED, "args has unknown flags");
    return KPT_OK;
}

static kpt_status call_impl(const void *impl, const kpti_env *env, const kpti_make_args *args,
                            kpti_object *object, kpti_error *error)
{
    return ((const kpti_tracebacks_impl *)impl)
        ->make(env, &args->of.tracebacks, &object->self, error);
}

static void destroy_impl(const void *impl, void *self)
{
    ((const kpti_tracebacks_impl *)impl)->destroy(self);
}

static const void *pick(const kpti_backend *backend)
{
    return backend->tracebacks;
}

_Static_assert(sizeof(kpt_tracebacks) == sizeof(kpti_made), "kpti_made is written to it");

const kpti_object_class kpti_tracebacks_class = {
    .kind = &kind,
    .args_size = sizeof(kpt_tracebacks_args),
    .args_v1_size = KPT_TRACEBACKS_ARGS_V1_SIZE,
    .ops = &ops,
    .ops_v1_size = KPT_TRACEBACKS_OPS_V1_SIZE,
    .noop = &kpti_noop_tracebacks,
    .pick = pick,
    .check = check,
    .call_impl = call_impl,
    .destroy = destroy_impl,
};

static kpt_status make(kpt_handle plugin, const kpt_tracebacks_args *args, kpt_tracebacks *out)
{
    return kpti_object_make(&kpti_tracebacks_class, plugin, args, out);
}

const kpt_traceback_maker kpti_traceback_table = {sizeof kpti_traceback_table, 0, make};
