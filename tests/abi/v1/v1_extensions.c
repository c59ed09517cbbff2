/* v1_extensions.c: the V1 plugin's memory tracer and observer: they write a line into their file. */
#include "v1_plugin.h"

static kpt_status nothing_of_memory(kpt_handle self)
{
    return find(self, MEMORY) ? KPT_OK : KPT_E_HANDLE;
}

static kpt_status write_file(object *o, kpt_str path, const char *text)
{
    FILE *file;
    if (!path.size || path.size >= sizeof o->path) return fail(o, KPT_E_INVALID, "path");
    memcpy(o->path, path.data, (size_t)path.size);
    o->path[path.size] = 0;
    file = fopen(o->path, "w");
    if (!file) return fail(o, KPT_E_IO, "can't be written");
    (void)fputs(text, file);
    return fclose(file) == 0 ? KPT_OK : fail(o, KPT_E_IO, "can't be written");
}

static kpt_status export_memory_history(kpt_handle self, kpt_str path)
{
    object *o = find(self, MEMORY);
    return o ? write_file(o, path, "memory of a V1 plugin\n") : KPT_E_HANDLE;
}

static kpt_status destroy_memory(kpt_handle self)
{
    return destroy(self, MEMORY);
}

kpt_status make_memory(void *make_ctx, const kpt_memory_args *args, kpt_memory_tracer *out)
{
    static const kpt_memory_ops ops = {
        sizeof ops,    0, nothing_of_memory, nothing_of_memory, export_memory_history, last_error,
        destroy_memory};
    kpt_memory_args a;
    object *o;
    kpt_status status = read_in(&a, sizeof a, args, KPT_MEMORY_ARGS_V1_SIZE);
    return status == KPT_OK ? make(make_ctx, MEMORY, &ops, out, &o) : status;
}

/* From state FROM to TO, and nowhere from others. */
static kpt_status turn(kpt_handle self, uint32_t from, uint32_t to)
{
    object *o = find(self, OBSERVER);
    if (!o) return KPT_E_HANDLE;
    if (o->state < from && to > from) return fail(o, KPT_E_STATE, "no file is open");
    if (o->state >= from) o->state = to;
    return KPT_OK;
}

static kpt_status open_file(kpt_handle self, kpt_str path)
{
    object *o = find(self, OBSERVER);
    kpt_status status;
    if (!o) return KPT_E_HANDLE;
    status = write_file(o, path, "operators of a V1 plugin\n");
    return status == KPT_OK ? turn(self, 1, 2) : status;
}

static kpt_status start(kpt_handle self)
{
    return turn(self, 2, 3);
}

static kpt_status stop_observer(kpt_handle self)
{
    return turn(self, 3, 2);
}

static kpt_status close_file(kpt_handle self)
{
    return turn(self, 2, 1);
}

static kpt_status begin_op(kpt_handle self, const kpt_op *op, uint64_t *op_id)
{
    object *o = find(self, OBSERVER);
    kpt_op local;
    kpt_status status = read_in(&local, sizeof local, op, KPT_OP_V1_SIZE);
    if (!o) return KPT_E_HANDLE;
    if (status == KPT_OK) *op_id = o->state == 3 ? ++o->ops : 0;
    return status;
}

static kpt_status end_op(kpt_handle self, uint64_t op_id, const kpt_op *op, kpt_str error)
{
    object *o = find(self, OBSERVER);
    kpt_op local;
    (void)error;
    if (!o) return KPT_E_HANDLE;
    if (op_id > o->ops) return KPT_E_INVALID;
    return read_in(&local, sizeof local, op, KPT_OP_V1_SIZE);
}

static kpt_status destroy_observer(kpt_handle self)
{
    return destroy(self, OBSERVER);
}

kpt_status make_observer(void *make_ctx, const kpt_observer_args *args, kpt_observer *out)
{
    static const kpt_observer_ops ops = {
        sizeof ops, 0,        open_file, start,      stop_observer,
        close_file, begin_op, end_op,    last_error, destroy_observer};
    kpt_observer_args a;
    object *o;
    kpt_status status = read_in(&a, sizeof a, args, KPT_OBSERVER_ARGS_V1_SIZE);
    return status == KPT_OK ? make(make_ctx, OBSERVER, &ops, out, &o) : status;
}
