/* cupti_stand_in.c: a CUPTI that does what a test plays on it. It keeps CUPTI's rules: one subscriber, only
 * what is enabled is told, records in buffers that it asks for and hands back on a thread of its own. Built
 * twice: as CUDA 13's, whose records are longer, and as CUDA 12's, which can't choose single functions. */
#include <cuda.h>
#include <cupti.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/gpu/stand_in.h"

#define SHOWN __attribute__((visibility("default")))
#if STAND_IN_MAJOR == 13
enum { VERSION = 130000, LONGER = 48 };
#else
enum { VERSION = 28, LONGER = 0 };
#endif
enum { KINDS = 64, CBIDS = 700, MAX_FAILURES = 8, MAX_FULL = 256 };

static const struct function {
    CUpti_CallbackDomain domain;
    uint32_t cbid;
    const char *name;
} functions[] = {
    {CUPTI_CB_DOMAIN_RUNTIME_API, 211, "cudaLaunchKernel_v7000"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 41, "cudaMemcpyAsync_v3020"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 51, "cudaMemsetAsync_v3020"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 165, "cudaDeviceSynchronize_v3020"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 16, "cudaSetDevice_v3020"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 311, "cudaGraphLaunch_v10000"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 317, "cudaStreamBeginCapture_v10000"},
    {CUPTI_CB_DOMAIN_RUNTIME_API, 279, "cudaStreamEndCapture_v10000"},
    {CUPTI_CB_DOMAIN_DRIVER_API, 307, "cuLaunchKernel"},
    {CUPTI_CB_DOMAIN_DRIVER_API, 652, "cuLaunchKernelEx"},
    {CUPTI_CB_DOMAIN_DRIVER_API, 276, "cuMemcpyHtoDAsync_v2"},
    {CUPTI_CB_DOMAIN_DRIVER_API, 304, "cuCtxGetCurrent"},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

typedef struct full {
    uint8_t *buffer;
    size_t size;
    size_t used;
} full;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUpti_CallbackFunc callback; /* the subscriber's */
static int other_has_it;
static uint8_t callbacks_on[4][CBIDS];
static uint8_t kinds_on[KINDS];
static uint8_t cbids_on[4][CBIDS]; /* single functions */
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static uint64_t (*timestamp)(void);
static full open_buffer;
static full filled[MAX_FULL];
static int filled_count;
static int out;
static size_t dropped;
static uint64_t external_id;
static uint32_t correlations;
static uint32_t marks;
static struct failure {
    const char *function;
    int result;
} failures[MAX_FAILURES];

static int failing(const char *function)
{
    for (int i = 0; i < MAX_FAILURES; i++)
        if (failures[i].function && strcmp(failures[i].function, function) == 0)
            return failures[i].result;
    return 0;
}
#define FAIL_IF_TOLD() \
    if (failing(__func__)) return (CUptiResult)failing(__func__)

static uint64_t now(void)
{
    struct timespec t;
    if (timestamp) return timestamp();
    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec + 12345; /* it is a bit ahead */
}

/* A record's head is its length, which only we know of. */
static void record(CUpti_ActivityKind kind, const void *data, size_t size)
{
    const size_t bytes = (size + LONGER + 8 + 7) & ~(size_t)7;
    size_t most = 0;
    uint8_t *at;
    if (!kinds_on[kind] || !request) return;
    if (open_buffer.buffer && open_buffer.used + bytes > open_buffer.size) {
        filled[filled_count++] = open_buffer;
        open_buffer.buffer = NULL;
    }
    if (!open_buffer.buffer) {
        open_buffer.used = 0;
        request(&open_buffer.buffer, &open_buffer.size, &most);
        out += open_buffer.buffer != NULL;
    }
    if (!open_buffer.buffer) {
        dropped++;
        return;
    }
    at = open_buffer.buffer + open_buffer.used;
    memset(at, 0xEE, bytes); /* what is behind the struct is not ours to read */
    *(uint64_t *)(void *)at = bytes;
    memcpy(at + 8, data, size);
    open_buffer.used += bytes;
}
#define RECORD(r) record((r).kind, &(r), sizeof(r))

static const struct function *find(CUpti_CallbackDomain domain, const char *name)
{
    for (int i = 0; name && i < FUNCTIONS; i++)
        if (functions[i].domain == domain && strncmp(functions[i].name, name, strlen(name)) == 0 &&
            (functions[i].name[strlen(name)] == 0 || functions[i].name[strlen(name)] == '_'))
            return &functions[i];
    return NULL;
}

static void tell(const struct function *f, CUpti_ApiCallbackSite site, uint32_t correlation,
                 uint32_t *result, void *context)
{
    CUpti_CallbackData data = {0};
    CUpti_CallbackFunc to;
    if (!f) return;
    (void)pthread_mutex_lock(&lock);
    to = callbacks_on[f->domain][f->cbid] ? callback : NULL;
    (void)pthread_mutex_unlock(&lock);
    data.callbackSite = site;
    data.functionName = f->name;
    data.functionReturnValue = site == CUPTI_API_EXIT ? result : NULL;
    data.context = context;
    data.correlationId = correlation;
    if (to) to(NULL, f->domain, f->cbid, &data);
}

static void record_api(const struct function *f, uint32_t correlation, uint32_t result,
                       uint64_t start)
{
    CUpti_ActivityAPI api = {0};
    if (!f) return;
    api.kind = f->domain == CUPTI_CB_DOMAIN_RUNTIME_API ? CUPTI_ACTIVITY_KIND_RUNTIME
                                                        : CUPTI_ACTIVITY_KIND_DRIVER;
    api.cbid = f->cbid;
    api.start = start;
    api.end = now();
    api.threadId = (uint32_t)syscall(SYS_gettid);
    api.correlationId = correlation;
    api.returnValue = result;
    if (cbids_on[f->domain][f->cbid]) kinds_on[api.kind]++;
    if (cbids_on[f->domain][f->cbid] || STAND_IN_MAJOR == 12) RECORD(api);
    if (cbids_on[f->domain][f->cbid]) kinds_on[api.kind]--;
}

static void record_work(const play_call *call, uint32_t correlation, uint64_t start)
{
    if (call->kernel && !call->no_kernel) {
        CUpti_ActivityKernel9 k = {0};
        k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
        k.start = start;
        k.end = start + 1000;
        k.deviceId = 0;
        k.contextId = 1;
        k.streamId = call->stream;
        k.correlationId = correlation;
        k.name = call->kernel;
        k.gridX = 1, k.gridY = 2, k.gridZ = 3, k.blockX = 4, k.blockY = 5, k.blockZ = 6;
        k.registersPerThread = 32;
        k.staticSharedMemory = 100;
        k.dynamicSharedMemory = 200;
        k.localMemoryPerThread = 16;
        k.graphId = call->graph;
        RECORD(k);
    }
    if (call->copy_bytes && call->copy_kind == CUPTI_ACTIVITY_MEMCPY_KIND_PTOP) {
        CUpti_ActivityMemcpyPtoP4 c = {0};
        c.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
        c.copyKind = (uint8_t)call->copy_kind, c.srcKind = 3, c.dstKind = 3;
        c.bytes = call->copy_bytes;
        c.start = start, c.end = start + 500;
        c.contextId = 1, c.streamId = call->stream, c.correlationId = correlation;
        RECORD(c);
    } else if (call->copy_bytes) {
        CUpti_ActivityMemcpy5 c = {0};
        c.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
        c.copyKind = (uint8_t)call->copy_kind, c.srcKind = 2, c.dstKind = 3;
        c.flags = CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC;
        c.bytes = call->copy_bytes;
        c.start = start, c.end = start + 500;
        c.contextId = 1, c.streamId = call->stream, c.correlationId = correlation;
        RECORD(c);
    }
    if (call->set_bytes) {
        CUpti_ActivityMemset4 m = {0};
        m.kind = CUPTI_ACTIVITY_KIND_MEMSET;
        m.value = 7, m.bytes = call->set_bytes;
        m.start = start, m.end = start + 250;
        m.contextId = 1, m.streamId = call->stream, m.correlationId = correlation;
        m.memoryKind = 3;
        RECORD(m);
    }
    if (call->sync_type) {
        CUpti_ActivitySynchronization s = {0};
        s.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
        s.type = (CUpti_ActivitySynchronizationType)call->sync_type;
        s.start = start, s.end = start + 10;
        s.contextId = 1, s.streamId = STAND_IN_MAJOR == 13 ? 0 : UINT32_MAX;
        s.cudaEventId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
        s.correlationId = correlation;
        RECORD(s);
    }
}

static uint32_t play(const play_call *call)
{
    const struct function *runtime = find(CUPTI_CB_DOMAIN_RUNTIME_API, call->runtime);
    const struct function *driver = find(CUPTI_CB_DOMAIN_DRIVER_API, call->driver);
    const uint64_t start = now();
    uint32_t correlation;
    uint32_t inner;
    uint32_t result = call->result;
    (void)pthread_mutex_lock(&lock);
    correlation = ++correlations;
    inner = call->own_numbers ? ++correlations : correlation;
    (void)pthread_mutex_unlock(&lock);
    tell(runtime, CUPTI_API_ENTER, correlation, &result, call->context);
    tell(driver, CUPTI_API_ENTER, inner, &result, call->context);
    (void)pthread_mutex_lock(&lock);
    if (external_id) {
        CUpti_ActivityExternalCorrelation e = {0};
        e.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
        e.externalId = external_id, e.correlationId = inner;
        RECORD(e);
    }
    if (!result) record_work(call, inner, now());
    record_api(driver, inner, result, start);
    (void)pthread_mutex_unlock(&lock);
    tell(driver, CUPTI_API_EXIT, inner, &result, call->context);
    (void)pthread_mutex_lock(&lock);
    record_api(runtime, correlation, result, start);
    (void)pthread_mutex_unlock(&lock);
    tell(runtime, CUPTI_API_EXIT, correlation, &result, call->context);
    return inner;
}

#include "tests/gpu/cupti_stand_in_api.h"
