/* observer_api.c: the execution-trace observer as hosts see it. Control calls go one at a time through the
 * handle table. begin_op, end_op and tape, which run with each operator, only peek. */
#include "plugin/api/observer_api.h"

#include <limits.h>

#include "noop/noop.h"
#include "plugin/objects/struct_size.h"

enum { CLOSED = 1, OPEN = 2, RECORDING = 3 };

static const kpti_handle_kind kind;

static kpt_status begin(kpti_call *call, kpt_handle self, kpti_object **object,
                        const kpti_observer_impl **impl)
{
    kpt_status status = kpti_call_begin(call, self, &kind);
    *object = call->object;
    *impl = status == KPT_OK ? (*object)->impl : NULL;
    return status;
}

static kpt_status open_file(kpt_handle self, kpt_str path)
{
    kpti_call call;
    kpti_object *object;
    const kpti_observer_impl *impl;
    char local[PATH_MAX];
    kpt_status status = begin(&call, self, &object, &impl);
    if (status != KPT_OK) return status;
    status = kpti_check_path(path, local, sizeof local, &call.error);
    if (status == KPT_OK && object->state == CLOSED) {
        status = impl->open(object->self, local, &call.error);
        if (status == KPT_OK) object->state = OPEN;
    }
    return kpti_call_leave(&call, status);
}

static kpt_status start(kpt_handle self)
{
    kpti_call call;
    kpti_object *object;
    const kpti_observer_impl *impl;
    kpt_status status = begin(&call, self, &object, &impl);
    if (status != KPT_OK) return status;
    if (object->state == CLOSED)
        status = kpti_fail(&call.error, KPT_E_STATE, "start: no file is open");
    else if (object->state == OPEN)
        status = impl->start(object->self, &call.error);
    if (status == KPT_OK) object->state = RECORDING;
    return kpti_call_leave(&call, status);
}

/* Returns the observer to the state TARGET, through all states between. */
static kpt_status go_back(kpt_handle self, uint32_t target)
{
    kpti_call call;
    kpti_object *object;
    const kpti_observer_impl *impl;
    kpt_status status = begin(&call, self, &object, &impl);
    if (status != KPT_OK) return status;
    if (object->state == RECORDING) {
        status = impl->stop(object->self, &call.error);
        object->state = OPEN;
    }
    if (status == KPT_OK && object->state > target) {
        status = impl->close(object->self, &call.error);
        object->state = CLOSED;
    }
    return kpti_call_leave(&call, status);
}

static kpt_status stop(kpt_handle self)
{
    return go_back(self, OPEN);
}

static kpt_status close_file(kpt_handle self)
{
    return go_back(self, CLOSED);
}

/* Makes *OP a complete struct and checks its top-level arrays. The smaller struct of an older host is copied to
 * LOCAL. */
static inline kpt_status take_op(const kpt_op **op, kpt_op *local)
{
    if (!kpti_size_is_whole(*op, sizeof *local)) {
        const kpt_status status = kpti_size_read(local, sizeof *local, *op, KPT_OP_V1_SIZE);
        if (status != KPT_OK) return status;
        *op = local;
    }
    if (((*op)->value_count && !(*op)->values) || ((*op)->attr_count && !(*op)->attrs))
        return KPT_E_INVALID;
    if (((*op)->flags & ~(uint32_t)KPT_OP_IN_ONE_CALL) || (*op)->spare) return KPT_E_UNSUPPORTED;
    return KPT_OK;
}

static kpt_status begin_op(kpt_handle self, const kpt_op *op, uint64_t *op_id)
{
    kpti_object *object = kpti_handle_peek(self, &kind);
    kpt_op local;
    kpt_status status;
    if (!object) return KPT_E_HANDLE;
    if (!op_id) return KPT_E_INVALID;
    *op_id = 0;
    status = take_op(&op, &local);
    if (status != KPT_OK) return status;
    return ((const kpti_observer_impl *)object->impl)->begin_op(object->self, op, op_id);
}

static kpt_status end_op(kpt_handle self, uint64_t op_id, const kpt_op *op, kpt_str error)
{
    kpti_object *object = kpti_handle_peek(self, &kind);
    kpt_op local;
    kpt_status status;
    if (!object) return KPT_E_HANDLE;
    if (!op_id) return KPT_OK;
    if (error.size && !error.data) return KPT_E_INVALID;
    status = take_op(&op, &local);
    if (status != KPT_OK) return status;
    return ((const kpti_observer_impl *)object->impl)->end_op(object->self, op_id, op, error);
}

static kpt_status destroy(kpt_handle self)
{
    return kpti_object_destroy(&kpti_observer_class, self);
}

static kpt_status get_stats(kpt_handle self, kpt_observer_stats *out)
{
    kpti_call call;
    kpti_object *object;
    const kpti_observer_impl *impl;
    kpt_observer_stats local = {0};
    kpt_status status = begin(&call, self, &object, &impl);
    if (status != KPT_OK) return status;
    status = kpti_size_check(out, KPT_OBSERVER_STATS_V1_SIZE);
    if (status == KPT_OK) {
        impl->get_stats(object->self, &local);
        kpti_size_write(out, &local, sizeof local);
    } else {
        (void)kpti_fail(&call.error, status, "get_stats: out is NULL or too small");
    }
    return kpti_call_leave(&call, status);
}

static kpt_status recover(kpt_handle self, kpt_str journal, kpt_str path)
{
    kpti_call call;
    kpti_object *object;
    const kpti_observer_impl *impl;
    char from[PATH_MAX];
    char to[PATH_MAX];
    kpt_status status = begin(&call, self, &object, &impl);
    if (status != KPT_OK) return status;
    status = kpti_check_path(journal, from, sizeof from, &call.error);
    if (status == KPT_OK) status = kpti_check_path(path, to, sizeof to, &call.error);
    if (status == KPT_OK) status = impl->recover(object->self, from, to, &call.error);
    return kpti_call_leave(&call, status);
}

static kpt_status tape(kpt_handle self, kpt_tape **out)
{
    kpti_object *object = kpti_handle_peek(self, &kind);
    if (!object) return KPT_E_HANDLE;
    if (!out) return KPT_E_INVALID;
    *out = ((const kpti_observer_impl *)object->impl)->tape(object->self);
    return KPT_OK;
}

static const kpt_observer_ops ops = {
    .struct_size = sizeof ops,
    .open = open_file,
    .start = start,
    .stop = stop,
    .close = close_file,
    .begin_op = begin_op,
    .end_op = end_op,
    .last_error = kpti_handle_last_error,
    .destroy = destroy,
    .get_stats = get_stats,
    .recover = recover,
    .tape = tape,
};

static void forked(void *object)
{
    kpti_object *o = object;
    o->state = CLOSED;
    ((const kpti_observer_impl *)o->impl)->forked(o->self);
}

static const kpti_handle_kind kind = {"observer", forked};

static kpt_status check(const kpti_env *env, kpti_make_args *args, kpti_error *error)
{
    const kpt_observer_args *a = &args->of.observer;
    const uint32_t known = KPT_OBSERVER_STACKS | KPT_OBSERVER_RANGES;
    (void)env;
    if ((a->flags & ~known) || a->spare)
        return kpti_fail(error, KPT_E_UNSUPPORTED, "args has unknown flags");
    if (a->data_ops.size && !a->data_ops.data)
        return kpti_fail(error, KPT_E_INVALID, "args' data_ops has a size, but no data");
    return KPT_OK;
}

static kpt_status call_factory(kpt_any_fn make, void *make_ctx, const kpti_make_args *args,
                               kpti_made *out)
{
    kpt_observer made;
    kpt_status status;
    KPT_INIT(&made);
    status = ((kpt_observer_make_fn)make)(make_ctx, &args->of.observer, &made);
    *out = (kpti_made){sizeof *out, made.flags, made.ops, made.self};
    return status;
}

static kpt_status call_impl(const void *impl, const kpti_env *env, const kpti_make_args *args,
                            kpti_object *object, kpti_error *error)
{
    return ((const kpti_observer_impl *)impl)->make(env, &args->of.observer, &object->self, error);
}

static void destroy_impl(const void *impl, void *self)
{
    ((const kpti_observer_impl *)impl)->destroy(self);
}

static const void *pick(const kpti_backend *backend)
{
    return backend->observer;
}

_Static_assert(sizeof(kpt_observer) == sizeof(kpti_made), "kpti_made is written to it");

const kpti_object_class kpti_observer_class = {
    .kind = &kind,
    .factory_kind = KPT_FACTORY_OBSERVER,
    .first_state = CLOSED,
    .args_size = sizeof(kpt_observer_args),
    .args_v1_size = KPT_OBSERVER_ARGS_V1_SIZE,
    .ops = &ops,
    .ops_v1_size = KPT_OBSERVER_OPS_V1_SIZE,
    .noop = &kpti_noop_observer,
    .pick = pick,
    .check = check,
    .call_factory = call_factory,
    .call_impl = call_impl,
    .destroy = destroy_impl,
};
