#include "tests/abi/conform/recording.h"

/* Copies record I of the plugin's array, as far as we know its fields. */
static void copy_record(void *out, size_t size, const void *array, uint32_t i, uint32_t stride)
{
    memset(out, 0, size);
    memcpy(out, (const char *)array + (size_t)i * stride, size < stride ? size : stride);
}

static const char *what_is_wrong(const kpt_batch *b, const kpt_delivery *asked)
{
    if (b->struct_size < KPT_BATCH_V1_SIZE) return "a batch's struct_size is below V1";
    if (b->order != asked->order) return "a batch does not have the requested order";
    if (b->activity_count && (!b->activities || b->activity_stride < KPT_ACTIVITY_V1_SIZE))
        return "a batch's activity_count is not 0, but activities is NULL or the stride is below "
               "V1";
    if (b->name_count && (!b->names || b->name_stride < KPT_NAME_V1_SIZE))
        return "a batch's name_count is not 0, but names is NULL or the stride is below V1";
    if (b->thread_count && (!b->threads || b->thread_stride < KPT_THREAD_V1_SIZE))
        return "a batch's thread_count is not 0, but threads is NULL or the stride is below V1";
    return NULL;
}

typedef struct taking {
    recording *into;
    const kpt_delivery *asked;
} taking;

static int knows(const recording *r, const kpt_activity *a)
{
    int name = 0;
    int thread = 0;
    for (uint32_t i = 0; i < r->name_count; i++)
        name |= r->names[i].index == a->name;
    for (uint32_t i = 0; i < r->thread_count; i++)
        thread |= r->threads[i].index == a->thread;
    return name && thread;
}

static kpt_status take_batch(void *ctx, const kpt_batch *batch)
{
    recording *r = ((taking *)ctx)->into;
    if (!r->malformed) r->malformed = what_is_wrong(batch, ((taking *)ctx)->asked);
    if (r->malformed) return KPT_E_INVALID;
    r->batches++;
    if (batch->activity_count > r->largest_batch) r->largest_batch = batch->activity_count;
    for (uint32_t i = 0; i < batch->name_count && r->name_count < RECORDING_MAX_TABLE; i++)
        copy_record(&r->names[r->name_count++], sizeof(kpt_name), batch->names, i,
                    batch->name_stride);
    for (uint32_t i = 0; i < batch->thread_count && r->thread_count < RECORDING_MAX_TABLE; i++)
        copy_record(&r->threads[r->thread_count++], sizeof(kpt_thread), batch->threads, i,
                    batch->thread_stride);
    for (uint32_t i = 0; i < batch->activity_count; i++) {
        kpt_activity *a = &r->activities[r->activity_count];
        if (r->activity_count == RECORDING_MAX) return KPT_E_LIMIT;
        copy_record(a, sizeof *a, batch->activities, i, batch->activity_stride);
        if (!knows(r, a)) r->late_names++;
        r->activity_count++;
    }
    return KPT_OK;
}

recording *recording_take_with(conform *c, const kpt_tracer *tracer, kpt_delivery delivery)
{
    recording *r = calloc(1, sizeof *r);
    taking t = {r, &delivery};
    kpt_status status;
    if (r) r->activities = calloc(RECORDING_MAX, sizeof *r->activities);
    if (!r || !r->activities) abort();
    delivery.sink = take_batch;
    delivery.sink_ctx = &t;
    status = tracer->ops->get_events(tracer->self, &delivery);
    if (status != KPT_OK && !r->malformed)
        conform_unreached(c, "get_events returned %s", kpt_status_name(status));
    if (!r->malformed && r->activity_count == 0) conform_unreached(c, "no activity was delivered");
    return r;
}

recording *recording_take(conform *c, const kpt_tracer *tracer, uint32_t order)
{
    kpt_delivery delivery;
    KPT_INIT(&delivery);
    delivery.order = order;
    return recording_take_with(c, tracer, delivery);
}

/* Orders activities by fields that do not depend on the order of delivery. */
static int by_content(const void *left, const void *right)
{
    const kpt_activity *a = left;
    const kpt_activity *b = right;
    const uint64_t x[] = {
        a->thread, (uint64_t)a->start_ns, (uint64_t)a->end_ns, a->depth, a->name, a->kind,
        a->flags};
    const uint64_t y[] = {
        b->thread, (uint64_t)b->start_ns, (uint64_t)b->end_ns, b->depth, b->name, b->kind,
        b->flags};
    for (size_t i = 0; i < sizeof x / sizeof *x; i++)
        if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    return 0;
}

/* A sorted copy of the recording's activities, each once. */
static uint32_t contents(const recording *r, kpt_activity *out)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < r->activity_count; i++)
        if (r->activities[i].phase != KPT_PHASE_BEGIN) out[count++] = r->activities[i];
    qsort(out, count, sizeof *out, by_content);
    return count;
}

int recording_same(const recording *a, const recording *b)
{
    kpt_activity *x = calloc(RECORDING_MAX, sizeof *x);
    kpt_activity *y = calloc(RECORDING_MAX, sizeof *y);
    uint32_t count;
    int same;
    if (!x || !y) abort();
    count = contents(a, x);
    same = contents(b, y) == count;
    for (uint32_t i = 0; same && i < count; i++)
        same = by_content(&x[i], &y[i]) == 0;
    free(x);
    free(y);
    return same;
}
