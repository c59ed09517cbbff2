/* sample_observer.c: the execution-trace observer: a no-op, which reports that it is one, passes through
 * all states and creates no file. It records no operator, so every id is 0. */
#include "tests/plugins/sample.h"

enum { CLOSED = 1, OPEN = 2, RECORDING = 3 };

static kpt_status enter(kpt_handle self, sample_object **out)
{
    return sample_enter(self, KPT_FACTORY_OBSERVER, out);
}

static kpt_status open_file(kpt_handle self, kpt_str path)
{
    sample_object *object;
    kpt_status status = enter(self, &object);
    if (status != KPT_OK) return status;
    status = sample_take_path(object, path, "R734", "R735");
    if (status == KPT_OK && object->state == CLOSED) object->state = OPEN;
    return sample_leave(object, status);
}

static kpt_status start(kpt_handle self)
{
    sample_object *object;
    kpt_status status = enter(self, &object);
    if (status != KPT_OK) return status;
    if (object->state != CLOSED)
        object->state = RECORDING;
    else if (!wrong("R732"))
        status = sample_refuse(object, KPT_E_STATE, "start: no file is open");
    return sample_leave(object, status);
}

static kpt_status stop(kpt_handle self)
{
    sample_object *object;
    kpt_status status = enter(self, &object);
    if (status != KPT_OK) return status;
    if (object->state == RECORDING) object->state = OPEN;
    return sample_leave(object, status);
}

static kpt_status close_file(kpt_handle self)
{
    sample_object *object;
    kpt_status status = enter(self, &object);
    if (status != KPT_OK) return status;
    if (object->state == CLOSED && wrong("R733"))
        status = sample_refuse(object, KPT_E_STATE, "close: no file is open");
    object->state = CLOSED;
    return sample_leave(object, status);
}

/* Runs beside control calls and on many threads, so it does not enter the object and sets no last_error. */
static int is_alive(kpt_handle self)
{
    sample_object *object = sample_use(self, KPT_FACTORY_OBSERVER);
    if (object) sample_release(object);
    return object != NULL;
}

static kpt_status check_op(const kpt_op *theirs)
{
    static const sample_layout layout = {sizeof(kpt_op), KPT_OP_V1_SIZE, NULL, NULL, NULL};
    kpt_op op;
    kpt_status status = sample_read(&op, &layout, theirs);
    if (status == KPT_OK && op.value_count && !op.values && !wrong("R736")) return KPT_E_INVALID;
    if (status == KPT_OK && op.attr_count && !op.attrs && !wrong("R743")) return KPT_E_INVALID;
    if (status == KPT_OK && (op.flags & ~(uint32_t)KPT_OP_IN_ONE_CALL) && !wrong("R748"))
        return KPT_E_UNSUPPORTED;
    return status;
}

static kpt_status begin_op(kpt_handle self, const kpt_op *op, uint64_t *op_id)
{
    if (!is_alive(self)) return KPT_E_HANDLE;
    if (!op_id) return KPT_E_INVALID;
    *op_id = wrong("R745") ? 1 : 0;
    return check_op(op);
}

static kpt_status end_op(kpt_handle self, uint64_t op_id, const kpt_op *op, kpt_str error)
{
    if (!is_alive(self)) return wrong("R738") ? KPT_OK : KPT_E_HANDLE;
    if (op_id == 0) return wrong("R737") ? KPT_E_INVALID : KPT_OK;
    if (error.size && !error.data) return KPT_E_INVALID;
    return check_op(op);
}

static kpt_status destroy(kpt_handle self)
{
    return sample_destroy(&sample_observer_product, self);
}

static kpt_status get_stats(kpt_handle self, kpt_observer_stats *out)
{
    static const sample_layout layout = {sizeof(kpt_observer_stats), KPT_OBSERVER_STATS_V1_SIZE,
                                         NULL, NULL, NULL};
    const kpt_observer_stats nothing = {sizeof nothing, 0, wrong("R741") ? 1 : 0, 0, 0};
    sample_object *object;
    kpt_status status = enter(self, &object);
    if (status != KPT_OK) return status;
    status = sample_check(out, &layout);
    if (status != KPT_OK)
        return sample_leave(object, sample_refuse(object, status, "get_stats: out is too small"));
    sample_write(out, &layout, &nothing);
    return sample_leave(object, KPT_OK);
}

static kpt_status recover(kpt_handle self, kpt_str journal, kpt_str path)
{
    sample_object *object;
    kpt_status status = enter(self, &object);
    if (status != KPT_OK) return status;
    if (!wrong("R742")) status = sample_take_path(object, journal, NULL, NULL);
    if (status == KPT_OK) status = sample_take_path(object, path, NULL, NULL);
    if (status == KPT_OK)
        status = sample_refuse(object, KPT_E_UNSUPPORTED, "the sample has no journals");
    return sample_leave(object, status);
}

static kpt_status tape(kpt_handle self, kpt_tape **out)
{
    if (!is_alive(self)) return KPT_E_HANDLE;
    if (!out) return wrong("R747") ? KPT_OK : KPT_E_INVALID;
    *out = NULL;
    return KPT_OK;
}

static kpt_observer_ops ops = {
    .struct_size = sizeof ops,
    .open = open_file,
    .start = start,
    .stop = stop,
    .close = close_file,
    .begin_op = begin_op,
    .end_op = end_op,
    .last_error = sample_last_error,
    .destroy = destroy,
    .get_stats = get_stats,
    .recover = recover,
    .tape = tape,
};

__attribute__((constructor)) static void shorten(void)
{
    if (wrong("R731")) ops.struct_size = KPT_OBSERVER_OPS_V1_SIZE - (uint32_t)sizeof(kpt_any_fn);
}

static kpt_status check(sample_binding *binding, const void *args)
{
    const uint32_t known = wrong("R746") ? 0 : KPT_OBSERVER_STACKS | KPT_OBSERVER_RANGES;
    const kpt_observer_args *a = args;
    if ((a->flags & ~known) && !wrong("R739"))
        return sample_refuse(&binding->object, KPT_E_UNSUPPORTED, "there are unknown flags");
    if (a->data_ops.size && !a->data_ops.data && !wrong("R744"))
        return sample_refuse(&binding->object, KPT_E_INVALID, "the names of data_ops have no text");
    return KPT_OK;
}

static void begin(sample_object *object, const void *args)
{
    (void)args;
    object->state = CLOSED;
}

const sample_class sample_observer_product = {
    .kind = KPT_FACTORY_OBSERVER,
    .flags = KPT_OBJECT_NOOP,
    .why = "the sample records no operators",
    .args = {sizeof(kpt_observer_args), KPT_OBSERVER_ARGS_V1_SIZE, NULL, NULL, NULL},
    .out = {sizeof(kpt_observer), KPT_OBSERVER_V1_SIZE, NULL, NULL, NULL},
    .ops = &ops,
    .ops_v1_size = KPT_OBSERVER_OPS_V1_SIZE,
    .object_bytes = sizeof(sample_object),
    .check = check,
    .begin = begin,
};
