/* sample_args.c: checks the arguments of a tracer. It checks every argument and stores none, since the
 * script is the same for all budgets, filters and watches. */
#include "tests/plugins/sample.h"

enum {
    ALL_FLAGS =
        KPT_TRACE_NO_C_CALLS | KPT_TRACE_ALL_CALLABLES | KPT_TRACE_THIS_THREAD | KPT_TRACE_TASKS
};
enum { MAX_TOOL_ID = 5, MAX_PERMILLE = 1000 };

static kpt_status refuse(sample_binding *binding, kpt_status status, const char *text)
{
    return sample_refuse(&binding->object, status, text);
}

/* An array of the host: its address, count and stride. */
typedef struct array {
    const void *first;
    uint32_t count;
    uint32_t stride;
    uint32_t size; /* size of our element type */
    uint32_t v1_size;
} array;

static kpt_status check_array(sample_binding *binding, array *a)
{
    if (a->count == 0) return KPT_OK;
    if (!a->first) {
        if (!wrong("R213")) return refuse(binding, KPT_E_INVALID, "an array is counted, but NULL");
        a->count = 0;
    }
    if (a->stride < a->v1_size && !wrong("R214"))
        return refuse(binding, KPT_E_SIZE, "an array's stride is below the V1 size");
    return KPT_OK;
}

static void copy_element(void *local, const array *a, uint32_t i)
{
    uint32_t stride = wrong("R215") ? a->size : a->stride;
    uint32_t filled = stride < a->size ? stride : a->size;
    memset(local, 0, a->size);
    memcpy(local, (const char *)a->first + (size_t)i * stride, filled);
}

static kpt_status check_filters(sample_binding *binding, const kpt_tracer_args *args)
{
    array a = {args->filters, args->filter_count, args->filter_stride, sizeof(kpt_filter),
               KPT_FILTER_V1_SIZE};
    kpt_status status = check_array(binding, &a);
    for (uint32_t i = 0; status == KPT_OK && i < a.count; i++) {
        kpt_filter f;
        copy_element(&f, &a, i);
        if (wrong("R216")) continue;
        if (f.action < KPT_FILTER_INCLUDE || f.action > KPT_FILTER_EXCLUDE)
            status = refuse(binding, KPT_E_UNSUPPORTED, "a filter's action is unknown");
        else if (f.match < KPT_MATCH_FILE_PREFIX || f.match > KPT_MATCH_FILE_GLOB)
            status = refuse(binding, KPT_E_UNSUPPORTED, "a filter's match is unknown");
        else if (!f.pattern.data || !f.pattern.size)
            status = refuse(binding, KPT_E_INVALID, "a filter's pattern is empty");
    }
    return status;
}

static kpt_status check_watches(sample_binding *binding, const kpt_tracer_args *args)
{
    array a = {args->watches, args->watch_count, args->watch_stride, sizeof(kpt_watch),
               KPT_WATCH_V1_SIZE};
    kpt_status status = check_array(binding, &a);
    for (uint32_t i = 0; status == KPT_OK && i < a.count; i++) {
        kpt_watch w;
        copy_element(&w, &a, i);
        if (wrong("R217")) continue;
        if (!w.code)
            status = refuse(binding, KPT_E_INVALID, "a watch has no code object");
        else if (!binding->host.on_watched_call)
            status = refuse(binding, KPT_E_INVALID, "there are watches, but no on_watched_call");
    }
    return status;
}

kpt_status sample_take_sink(sample_object *object, const kpt_chunk_sink *theirs,
                            const sample_layout *layout, const char *any, kpt_chunk_sink *sink)
{
    if (sample_read(sink, layout, theirs) != KPT_OK)
        return sample_refuse(object, KPT_E_SIZE, "the chunk sink is below its V1 size");
    if (wrong(any)) return KPT_OK;
    if (sink->flags & ~(uint32_t)KPT_CHUNKS_WHOLE)
        return sample_refuse(object, KPT_E_UNSUPPORTED, "the chunk sink has unknown flags");
    if (!sink->sealed)
        return sample_refuse(object, KPT_E_INVALID, "the chunk sink has no function");
    return KPT_OK;
}

static kpt_status check_chunk_sink(sample_binding *binding, const kpt_chunk_sink *theirs)
{
    static const sample_layout layout = {sizeof(kpt_chunk_sink), KPT_CHUNK_SINK_V1_SIZE, "R219",
                                         NULL, NULL};
    kpt_chunk_sink sink;
    return theirs ? sample_take_sink(&binding->object, theirs, &layout, "R218", &sink) : KPT_OK;
}

kpt_status sample_check_tracer_args(sample_binding *binding, const void *args)
{
    const kpt_tracer_args *a = args;
    kpt_status status;
    if (a->flags & ~(uint32_t)ALL_FLAGS && !wrong("R211"))
        return refuse(binding, KPT_E_UNSUPPORTED, "there are unknown flags");
    if (a->on_full > KPT_FULL_RING && !wrong("R212"))
        return refuse(binding, KPT_E_UNSUPPORTED, "on_full is unknown");
    if ((a->tool_id > MAX_TOOL_ID || a->overhead_permille > MAX_PERMILLE) && !wrong("R223"))
        return refuse(binding, KPT_E_INVALID, "tool_id or overhead_permille is out of range");
    status = check_filters(binding, a);
    if (status == KPT_OK) status = check_watches(binding, a);
    if (status == KPT_OK) status = check_chunk_sink(binding, a->chunk_sink);
    return status;
}
