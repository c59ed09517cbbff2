/* cupti_stand_in_api.h: the rest of cupti_stand_in.c: the functions of CUPTI, and the table that tests play
 * on. A part of that file, included at its end. */

SHOWN CUptiResult cuptiGetVersion(uint32_t *version)
{
    FAIL_IF_TOLD();
    *version = VERSION;
    return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
    (void)result;
    *text = "CUPTI_ERROR_OF_THE_STAND_IN";
    return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc function,
                                 void *ctx)
{
    CUptiResult result = CUPTI_SUCCESS;
    FAIL_IF_TOLD();
    (void)ctx;
    (void)pthread_mutex_lock(&lock);
    if (callback || other_has_it)
        result = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    else
        callback = function;
    (void)pthread_mutex_unlock(&lock);
    *subscriber = (CUpti_SubscriberHandle)(void *)&callback;
    return result;
}

SHOWN CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
    (void)subscriber;
    (void)pthread_mutex_lock(&lock);
    callback = NULL;
    memset(callbacks_on, 0, sizeof callbacks_on);
    (void)pthread_mutex_unlock(&lock);
    FAIL_IF_TOLD();
    return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle subscriber,
                                      CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
    FAIL_IF_TOLD();
    (void)subscriber;
    (void)pthread_mutex_lock(&lock);
    callbacks_on[domain][cbid] = (uint8_t)enable;
    (void)pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid,
                                       const char **name)
{
    FAIL_IF_TOLD();
    for (int i = 0; i < FUNCTIONS; i++)
        if (functions[i].domain == domain && functions[i].cbid == cbid) {
            *name = functions[i].name;
            return CUPTI_SUCCESS;
        }
    return CUPTI_ERROR_INVALID_PARAMETER;
}

SHOWN CUptiResult cuptiGetTimestamp(uint64_t *time)
{
    FAIL_IF_TOLD();
    *time = now();
    return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
    FAIL_IF_TOLD();
    return type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM ? CUPTI_SUCCESS
                                                        : CUPTI_ERROR_INVALID_PARAMETER;
}

/* A kind as a whole overrides what was said of single functions. */
static void set_kind(CUpti_ActivityKind kind, int on)
{
    (void)pthread_mutex_lock(&lock);
    kinds_on[kind] = (uint8_t)on;
    if (kind == CUPTI_ACTIVITY_KIND_RUNTIME) memset(cbids_on[2], on, sizeof cbids_on[2]);
    if (kind == CUPTI_ACTIVITY_KIND_DRIVER) memset(cbids_on[1], on, sizeof cbids_on[1]);
    (void)pthread_mutex_unlock(&lock);
}

SHOWN CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    FAIL_IF_TOLD();
    set_kind(kind, 1);
    return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    set_kind(kind, 0);
    FAIL_IF_TOLD();
    return CUPTI_SUCCESS;
}

#if STAND_IN_MAJOR == 13
static CUptiResult set_cbid(int domain, uint32_t cbid, uint8_t enable)
{
    (void)pthread_mutex_lock(&lock);
    cbids_on[domain][cbid] = enable;
    (void)pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable);
SHOWN CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable);

CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId cbid, uint8_t enable)
{
    FAIL_IF_TOLD();
    return set_cbid(2, cbid, enable);
}

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId cbid, uint8_t enable)
{
    FAIL_IF_TOLD();
    return set_cbid(1, cbid, enable);
}
#endif

#ifndef STAND_IN_NO_CLOCK
SHOWN CUptiResult cuptiActivityRegisterTimestampCallback(uint64_t (*function)(void))
{
    FAIL_IF_TOLD();
    timestamp = function;
    return CUPTI_SUCCESS;
}
#endif

#ifndef STAND_IN_TOO_OLD
SHOWN CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                                 CUpti_BuffersCallbackCompleteFunc completed)
{
    FAIL_IF_TOLD();
    (void)pthread_mutex_lock(&lock);
    request = requested;
    complete = completed;
    (void)pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}
#endif

SHOWN CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t size, CUpti_Activity **at)
{
    uint8_t *next = buffer;
    FAIL_IF_TOLD();
    if (*at) next = (uint8_t *)*at - 8 + *(uint64_t *)(void *)((uint8_t *)*at - 8);
    if (next >= buffer + size) return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *at = (CUpti_Activity *)(void *)(next + 8);
    return CUPTI_SUCCESS;
}

SHOWN CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream,
                                                    size_t *count)
{
    FAIL_IF_TOLD();
    (void)context;
    (void)stream;
    (void)pthread_mutex_lock(&lock);
    *count = dropped;
    dropped = 0;
    (void)pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

typedef struct handing {
    full list[MAX_FULL + 1];
    int count;
} handing;

static void *hand_over(void *ctx)
{
    handing *h = ctx;
    for (int i = 0; i < h->count; i++)
        complete(NULL, 0, h->list[i].buffer, h->list[i].size, h->list[i].used);
    return NULL;
}

SHOWN CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    handing h;
    pthread_t thread;
    FAIL_IF_TOLD();
    (void)flag;
    (void)pthread_mutex_lock(&lock);
    memcpy(h.list, filled, sizeof filled);
    h.count = filled_count;
    if (open_buffer.buffer) h.list[h.count++] = open_buffer;
    out -= h.count;
    filled_count = 0;
    open_buffer.buffer = NULL;
    (void)pthread_mutex_unlock(&lock);
    if (h.count && pthread_create(&thread, NULL, hand_over, &h) == 0)
        (void)pthread_join(thread, NULL);
    return CUPTI_SUCCESS;
}

static void play_marker(uint32_t flags, uint32_t id, const char *name)
{
    CUpti_ActivityMarker2 m = {0};
    m.kind = CUPTI_ACTIVITY_KIND_MARKER;
    m.flags = (CUpti_ActivityFlag)flags;
    m.timestamp = now();
    m.id = id;
    m.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
    m.objectId.pt.threadId = (uint32_t)syscall(SYS_gettid);
    m.name = name;
    (void)pthread_mutex_lock(&lock);
    RECORD(m);
    (void)pthread_mutex_unlock(&lock);
}

static uint32_t range_begin(const char *name)
{
    play_marker(CUPTI_ACTIVITY_FLAG_MARKER_START, ++marks, name);
    return marks;
}

static void range_end(uint32_t id)
{
    play_marker(CUPTI_ACTIVITY_FLAG_MARKER_END, id, NULL);
}

static void mark(const char *name)
{
    play_marker(CUPTI_ACTIVITY_FLAG_MARKER_INSTANTANEOUS, ++marks, name);
}

static void name_object(uint32_t object_kind, uint32_t id, const char *name)
{
    CUpti_ActivityName n = {0};
    n.kind = CUPTI_ACTIVITY_KIND_NAME;
    n.objectKind = (CUpti_ActivityObjectKind)object_kind;
    n.objectId.dcs.deviceId = n.objectId.dcs.contextId = n.objectId.dcs.streamId = id;
    n.name = name;
    (void)pthread_mutex_lock(&lock);
    RECORD(n);
    (void)pthread_mutex_unlock(&lock);
}

static void overhead(uint32_t kind)
{
    CUpti_ActivityOverhead o = {0};
    o.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
    o.overheadKind = (CUpti_ActivityOverheadKind)kind;
    o.objectKind = CUPTI_ACTIVITY_OBJECT_THREAD;
    o.objectId.pt.threadId = 77;
    o.start = now();
    o.end = o.start + 3;
    (void)pthread_mutex_lock(&lock);
    RECORD(o);
    (void)pthread_mutex_unlock(&lock);
}

static void external(uint64_t id)
{
    external_id = id;
}

static void drop(size_t records)
{
    dropped += records;
}

static void other_tool(int has_it)
{
    other_has_it = has_it;
}

static void fail(const char *function, int result)
{
    for (int i = 0; i < MAX_FAILURES; i++)
        if (!failures[i].function || strcmp(failures[i].function, function) == 0) {
            failures[i] = (struct failure){function, result};
            return;
        }
}

static void destroy_context(void *context)
{
    CUpti_ResourceData data = {0};
    const uint32_t cbid = CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING;
    data.context = context;
    if (callback && callbacks_on[CUPTI_CB_DOMAIN_RESOURCE][cbid])
        callback(NULL, CUPTI_CB_DOMAIN_RESOURCE, cbid, &data);
}

static uint64_t enabled_kinds(void)
{
    uint64_t kinds = 0;
    for (int i = 0; i < KINDS; i++)
        kinds |= (uint64_t)(kinds_on[i] != 0) << i;
    return kinds;
}

static int subscribed(void)
{
    return callback != NULL;
}

static int buffers_out(void)
{
    return out;
}

static void work(const play_call *call, uint32_t correlation)
{
    (void)pthread_mutex_lock(&lock);
    record_work(call, correlation, now());
    (void)pthread_mutex_unlock(&lock);
}

static void reset(void)
{
    memset(failures, 0, sizeof failures);
    memset(kinds_on, 0, sizeof kinds_on);
    memset(cbids_on, 0, sizeof cbids_on);
    memset(callbacks_on, 0, sizeof callbacks_on);
    callback = NULL;
    other_has_it = 0;
    external_id = 0;
    dropped = 0;
}

extern SHOWN const play_cupti play_cupti_table;
const play_cupti play_cupti_table = {reset,         play,        range_begin, range_end,
                                     mark,          name_object, overhead,    external,
                                     drop,          other_tool,  fail,        destroy_context,
                                     enabled_kinds, subscribed,  buffers_out, work};
