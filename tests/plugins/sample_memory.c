/* sample_memory.c: the memory tracer: a no-op, which reports that it is one and creates no file. Its state
 * only records whether it was started. */
#include <stdio.h>

#include "tests/plugins/sample.h"

/* For R715 and R735: an empty file. */
static void create_file(kpt_str path)
{
    char name[4096];
    FILE *file;
    if (path.size >= sizeof name) return;
    memcpy(name, path.data, path.size);
    name[path.size] = 0;
    file = fopen(name, "w");
    if (file) (void)fclose(file);
}

kpt_status sample_take_path(sample_object *object, kpt_str path, const char *any_path,
                            const char *makes_file)
{
    int usable = path.data && path.size > 0 && !memchr(path.data, 0, path.size);
    if (!usable && !wrong(any_path))
        return sample_refuse(object, KPT_E_INVALID, "the path is empty, or has a NUL");
    if (usable && wrong(makes_file)) create_file(path);
    return KPT_OK;
}

static kpt_status enter(kpt_handle self, sample_object **out)
{
    return sample_enter(self, KPT_FACTORY_MEMORY, out);
}

static kpt_status start(kpt_handle self)
{
    sample_object *object;
    kpt_status status = enter(self, &object);
    if (status != KPT_OK) return status;
    if (object->state == KPT_STATE_RUNNING && wrong("R712"))
        status = sample_refuse(object, KPT_E_STATE, "start: it runs already");
    object->state = KPT_STATE_RUNNING;
    return sample_leave(object, status);
}

static kpt_status stop(kpt_handle self)
{
    sample_object *object;
    kpt_status status = enter(self, &object);
    if (status == KPT_E_HANDLE && wrong("R716")) return KPT_OK;
    if (status != KPT_OK) return status;
    object->state = KPT_STATE_STOPPED;
    return sample_leave(object, status);
}

static kpt_status export_memory_history(kpt_handle self, kpt_str path)
{
    sample_object *object;
    kpt_status status = enter(self, &object);
    if (status != KPT_OK) return status;
    status = sample_take_path(object, path, "R714", "R715");
    if (object->state == KPT_STATE_RUNNING && wrong("R713"))
        status = sample_refuse(object, KPT_E_STATE, "export: it runs");
    return sample_leave(object, status);
}

/* For R719: checks the action and the strings of a report. */
static kpt_status check_report(const kpt_memory_report *theirs)
{
    static const sample_layout layout = {sizeof(kpt_memory_report), KPT_MEMORY_REPORT_V1_SIZE, NULL,
                                         NULL, NULL};
    kpt_memory_report r;
    kpt_status status = sample_read(&r, &layout, theirs);
    if (status != KPT_OK || wrong("R719")) return status;
    if (r.action != KPT_REPORT_ALLOC && r.action != KPT_REPORT_FREE) return KPT_E_UNSUPPORTED;
    if ((r.category.size && !r.category.data) || (r.owner.size && !r.owner.data))
        return KPT_E_INVALID;
    return KPT_OK;
}

/* Runs beside control calls and on many threads, so it does not enter the object and sets no last_error. */
static kpt_status report(kpt_handle self, const kpt_memory_report *report)
{
    sample_object *object = sample_use(self, KPT_FACTORY_MEMORY);
    kpt_status status = KPT_E_HANDLE;
    if (!object) return status;
    status = check_report(report);
    if (wrong("R720") && object->state == KPT_STATE_STOPPED) status = KPT_E_STATE;
    sample_release(object);
    return status;
}

static kpt_status destroy(kpt_handle self)
{
    return sample_destroy(&sample_memory_product, self);
}

static kpt_memory_ops ops = {
    .struct_size = sizeof ops,
    .start = start,
    .stop = stop,
    .export_memory_history = export_memory_history,
    .last_error = sample_last_error,
    .destroy = destroy,
    .report = report,
};

__attribute__((constructor)) static void shorten(void)
{
    if (wrong("R711")) ops.struct_size = KPT_MEMORY_OPS_V1_SIZE - (uint32_t)sizeof(kpt_any_fn);
}

static kpt_status check(sample_binding *binding, const void *args)
{
    const kpt_memory_args *a = args;
    if ((a->flags || a->domains) && !wrong("R717"))
        return sample_refuse(&binding->object, KPT_E_UNSUPPORTED,
                             "there are unknown flags or domains");
    return KPT_OK;
}

static void begin(sample_object *object, const void *args)
{
    (void)args;
    object->state = KPT_STATE_STOPPED;
}

const sample_class sample_memory_product = {
    .kind = KPT_FACTORY_MEMORY,
    .flags = KPT_OBJECT_NOOP,
    .why = "the sample records no memory",
    .args = {sizeof(kpt_memory_args), KPT_MEMORY_ARGS_V1_SIZE, NULL, NULL, NULL},
    .out = {sizeof(kpt_memory_tracer), KPT_MEMORY_TRACER_V1_SIZE, NULL, NULL, NULL},
    .ops = &ops,
    .ops_v1_size = KPT_MEMORY_OPS_V1_SIZE,
    .object_bytes = sizeof(sample_object),
    .check = check,
    .begin = begin,
};
