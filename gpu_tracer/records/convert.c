/* convert.c: see convert.h. It has one function for each kind of record. A record is read as the oldest
 * version of its struct in CUDA 12. Later versions, also those of CUDA 13, begin with the same fields
 * (tests/native/gpu/layout.c); only the id that means none differs. */
#include "gpu_tracer/records/convert.h"

#include "gpu_tracer/cupti/api_functions.h"

/* The lists that receive a buffer's records. */
typedef struct conversion {
    const kpti_cupti *cupti;
    kpti_gpu_store *store;
    kpti_gpu_lists lists;
    uint64_t kept;
    uint64_t dropped;
} conversion;

static int keep(conversion *c, int list, const void *item)
{
    if (kpti_list_add(&c->lists.of[list], c->store->budget, item)) {
        c->kept += list != KPTI_GPU_LINKS && list != KPTI_GPU_NAMED;
        return 1;
    }
    c->dropped++;
    return 0;
}

static kpt_gpu_event event_of(uint16_t kind, uint64_t start, uint64_t end)
{
    return (kpt_gpu_event){.kind = kind,
                           .device = KPT_GPU_NONE,
                           .context = KPT_GPU_NONE,
                           .stream = KPT_GPU_NONE,
                           .start_ns = (int64_t)start,
                           .end_ns = (int64_t)end};
}

/* Copies the device, context, stream and correlation, which all GPU activities have, each in its own
 * struct. */
#define TAKE_PLACE(e, r)                                                  \
    do {                                                                  \
        (e).flags = (r)->graphId || (r)->graphNodeId ? KPT_GPU_GRAPH : 0; \
        (e).device = (r)->deviceId;                                       \
        (e).context = (r)->contextId;                                     \
        (e).stream = (r)->streamId;                                       \
        (e).correlation = (r)->correlationId;                             \
        (e).graph = (r)->graphId;                                         \
    } while (0)

static void keep_kernel(conversion *c, const CUpti_Activity *record)
{
    const CUpti_ActivityKernel9 *r = (const void *)record;
    kpt_gpu_event e = event_of(KPT_GPU_KERNEL, r->start, r->end);
    TAKE_PLACE(e, r);
    e.name = kpti_names_keep(&c->store->names, r->name, 1);
    e.grid[0] = (uint32_t)r->gridX;
    e.grid[1] = (uint32_t)r->gridY;
    e.grid[2] = (uint32_t)r->gridZ;
    e.block[0] = (uint32_t)r->blockX;
    e.block[1] = (uint32_t)r->blockY;
    e.block[2] = (uint32_t)r->blockZ;
    e.registers = r->registersPerThread;
    e.shared_static_bytes = (uint32_t)r->staticSharedMemory;
    e.shared_dynamic_bytes = (uint32_t)r->dynamicSharedMemory;
    e.local_bytes = r->localMemoryPerThread;
    (void)keep(c, KPTI_GPU_EVENTS, &e);
}

/* A copy within a device or between host and device, and a copy between two devices: two structs with the
 * same fields. */
#define DEFINE_KEEP_COPY(name, type)                                               \
    static void name(conversion *c, const CUpti_Activity *record)                  \
    {                                                                              \
        const type *r = (const void *)record;                                      \
        kpt_gpu_event e = event_of(KPT_GPU_MEMCPY, r->start, r->end);              \
        TAKE_PLACE(e, r);                                                          \
        if (r->flags & CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC) e.flags |= KPT_GPU_ASYNC; \
        e.bytes = r->bytes;                                                        \
        e.copy_kind = r->copyKind;                                                 \
        e.source_kind = r->srcKind;                                                \
        e.target_kind = r->dstKind;                                                \
        (void)keep(c, KPTI_GPU_EVENTS, &e);                                        \
    }
DEFINE_KEEP_COPY(keep_memcpy, CUpti_ActivityMemcpy5)
DEFINE_KEEP_COPY(keep_peer_memcpy, CUpti_ActivityMemcpyPtoP4)

static void keep_memset(conversion *c, const CUpti_Activity *record)
{
    const CUpti_ActivityMemset4 *r = (const void *)record;
    kpt_gpu_event e = event_of(KPT_GPU_MEMSET, r->start, r->end);
    TAKE_PLACE(e, r);
    if (r->flags & CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC) e.flags |= KPT_GPU_ASYNC;
    e.bytes = r->bytes;
    e.target_kind = r->memoryKind;
    e.value = r->value;
    (void)keep(c, KPTI_GPU_EVENTS, &e);
}

static uint32_t id_or_none(const conversion *c, uint32_t id)
{
    return id == 0 && kpti_cupti_zero_is_none(c->cupti) ? KPT_GPU_NONE : id;
}

static void keep_wait(conversion *c, const CUpti_Activity *record)
{
    const CUpti_ActivitySynchronization *r = (const void *)record;
    kpt_gpu_event e = event_of(KPT_GPU_SYNC, r->start, r->end);
    e.context = id_or_none(c, r->contextId);
    e.stream = id_or_none(c, r->streamId);
    e.correlation = r->correlationId;
    e.sync_kind = (uint32_t)r->type;
    if (r->cudaEventId != CUPTI_SYNCHRONIZATION_INVALID_VALUE) e.event = r->cudaEventId;
    (void)keep(c, KPTI_GPU_EVENTS, &e);
}

static const char *overhead_name(uint32_t kind)
{
    static const char *const names[] = {
        NULL,
        "Activity Buffer Flush",
        "Instrumentation",
        "Resource",
        "Runtime Triggered Module Loading",
        "Lazy Function Loading",
        "Command Buffer Full",
        "Activity Buffer Request",
        "UVM Activity Init",
    };
    const uint32_t number = kind >> 16;
    if (kind == CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER) return "Driver Compiler";
    return number && number < sizeof names / sizeof names[0] ? names[number] : "Overhead";
}

static void keep_overhead(conversion *c, const CUpti_Activity *record)
{
    const CUpti_ActivityOverhead *r = (const void *)record;
    kpt_gpu_event e = event_of(KPT_GPU_OVERHEAD, r->start, r->end);
    e.name = kpt_str_of(overhead_name((uint32_t)r->overheadKind));
    if (r->objectKind == CUPTI_ACTIVITY_OBJECT_THREAD) e.os_tid = r->objectId.pt.threadId;
    (void)keep(c, KPTI_GPU_EVENTS, &e);
}

static void keep_call(conversion *c, const CUpti_Activity *record)
{
    const CUpti_ActivityAPI *r = (const void *)record;
    const int driver = r->kind == CUPTI_ACTIVITY_KIND_DRIVER;
    const kpti_gpu_call call = {.kind = driver ? KPT_GPU_DRIVER : KPT_GPU_RUNTIME,
                                .cbid = r->cbid,
                                .os_tid = r->threadId,
                                .correlation = r->correlationId,
                                .result = r->returnValue,
                                .start = r->start,
                                .end = r->end};
    const kpti_call_row *row =
        kpti_call_of(driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API, r->cbid);
    /* CUPTI may be unable to select functions. */
    if (row->wanted & KPTI_CALL_KEPT) (void)keep(c, KPTI_GPU_CALLS, &call);
}

static void keep_mark(conversion *c, const CUpti_Activity *record)
{
    const CUpti_ActivityMarker2 *r = (const void *)record;
    const kpti_gpu_mark mark = {
        .flags = (uint32_t)r->flags,
        .id = r->id,
        .os_tid = r->objectKind == CUPTI_ACTIVITY_OBJECT_THREAD ? r->objectId.pt.threadId : 0,
        .time = r->timestamp,
        .name = kpti_names_keep(&c->store->names, r->name, 0)};
    if (keep(c, KPTI_GPU_MARKS, &mark) && mark.flags & CUPTI_ACTIVITY_FLAG_MARKER_END)
        c->kept--; /* its begin and its end are one event */
}

static void keep_name(conversion *c, const CUpti_Activity *record)
{
    const CUpti_ActivityName *r = (const void *)record;
    kpt_gpu_name name = {0, 0, kpti_names_keep(&c->store->names, r->name, 0)};
    switch (r->objectKind) {
    case CUPTI_ACTIVITY_OBJECT_DEVICE:
        name.what = KPT_GPU_NAMES_DEVICE;
        name.id = r->objectId.dcs.deviceId;
        break;
    case CUPTI_ACTIVITY_OBJECT_CONTEXT:
        name.what = KPT_GPU_NAMES_CONTEXT;
        name.id = r->objectId.dcs.contextId;
        break;
    case CUPTI_ACTIVITY_OBJECT_STREAM:
        name.what = KPT_GPU_NAMES_STREAM;
        name.id = r->objectId.dcs.streamId;
        break;
    default:
        return;
    }
    (void)keep(c, KPTI_GPU_NAMED, &name);
}

static void keep_link(conversion *c, const CUpti_Activity *record)
{
    const CUpti_ActivityExternalCorrelation *r = (const void *)record;
    const kpti_gpu_link link = {r->correlationId, 0, r->externalId};
    (void)keep(c, KPTI_GPU_LINKS, &link);
}

static void convert_one(conversion *c, const CUpti_Activity *record)
{
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
        keep_kernel(c, record);
        break;
    case CUPTI_ACTIVITY_KIND_MEMCPY:
        keep_memcpy(c, record);
        break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
        keep_peer_memcpy(c, record);
        break;
    case CUPTI_ACTIVITY_KIND_MEMSET:
        keep_memset(c, record);
        break;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
        keep_wait(c, record);
        break;
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
        keep_overhead(c, record);
        break;
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER:
        keep_call(c, record);
        break;
    case CUPTI_ACTIVITY_KIND_MARKER:
        keep_mark(c, record);
        break;
    case CUPTI_ACTIVITY_KIND_NAME:
        keep_name(c, record);
        break;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
        keep_link(c, record);
        break;
    default: /* a kind that another tool has enabled */
        break;
    }
}

void kpti_convert(const kpti_cupti *cupti, kpti_gpu_store *store, uint8_t *records, size_t size,
                  int drop_all)
{
    conversion c = {.cupti = cupti, .store = store};
    CUpti_Activity *record = NULL;
    kpti_gpu_lists_init(&c.lists);
    while (cupti->cuptiActivityGetNextRecord(records, size, &record) == CUPTI_SUCCESS) {
        if (drop_all)
            c.dropped++;
        else
            convert_one(&c, record);
    }
    kpti_record_store_put(store, &c.lists);
    atomic_fetch_add_explicit(&store->events, c.kept, memory_order_relaxed);
    kpti_budget_drop(store->budget, c.dropped);
}
