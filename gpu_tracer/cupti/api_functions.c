#include "gpu_tracer/cupti/api_functions.h"

static kpti_call_row rows[2][KPTI_MAX_CALLS]; /* driver, runtime */
static int learned;

static int begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Frequent and short calls of no interest. A loop that polls would fill the trace with them. */
static const char *const ignored[] = {
    "GetDevice",           "SetDevice",           "GetLastError",
    "PeekAtLastError",     "DeviceGetAttribute",  "EventQuery",
    "StreamQuery",         "StreamIsCapturing",   "StreamGetCaptureInfo",
    "FuncGetAttributes",   "FuncSetAttribute",    "Occupancy",
    "GetErrorName",        "GetErrorString",      "DriverGetVersion",
    "RuntimeGetVersion",   "GetDriverEntryPoint", "CtxGet",
    "CtxSetCurrent",       "CtxPushCurrent",      "CtxPopCurrent",
    "PointerGetAttribute", "DeviceGet",           "GetExportTable"};

/* The runtime makes many driver calls per call, so only driver calls that start or do work are kept. */
static const char *const recorded[] = {
    "Launch",     "Memcpy",      "Memset",      "GraphLaunch", "MemAlloc",       "MemFree",
    "ModuleLoad", "MemPrefetch", "LibraryLoad", "EventRecord", "StreamWaitEvent"};

static const char *const with_stack[] = {"Launch", "Memcpy", "Memset", "GraphLaunch",
                                         "MemPrefetch"};

/* Calls without a stack that may take long. */
static const char *const long_calls[] = {"Malloc",   "Free",       "HostAlloc",    "HostRegister",
                                         "MemAlloc", "MemFree",    "MemHostAlloc", "MemCreate",
                                         "MemMap",   "ModuleLoad", "LibraryLoad"};

static int is_one_of(const char *name, const char *const *prefixes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (begins(name, prefixes[i])) return 1;
    return 0;
}
#define IS_ONE_OF(name, table) is_one_of(name, table, sizeof(table) / sizeof((table)[0]))

uint32_t kpti_call_wanted(uint32_t domain, const char *name)
{
    const int runtime = domain == CUPTI_CB_DOMAIN_RUNTIME_API;
    const char *prefix = runtime ? "cuda" : "cu";
    const char *rest = name + strlen(prefix);
    uint32_t wanted = 0;
    int waits;
    if (!begins(name, prefix)) return 0; /* internal, as __cudaPushCallConfiguration */
    waits = strstr(rest, "Synchronize") != NULL;
    if (runtime ? !IS_ONE_OF(rest, ignored) : waits || IS_ONE_OF(rest, recorded))
        wanted |= KPTI_CALL_KEPT;
    if (waits || IS_ONE_OF(rest, with_stack)) wanted |= KPTI_CALL_STACK | KPTI_CALL_TIMED;
    if (IS_ONE_OF(rest, long_calls)) wanted |= KPTI_CALL_TIMED;
    if (begins(rest, "Launch") && !begins(rest, "LaunchHostFunc")) wanted |= KPTI_CALL_KERNEL;
    if (begins(rest, "GraphLaunch")) wanted |= KPTI_CALL_GRAPH;
    if (begins(rest, "StreamBeginCapture")) wanted |= KPTI_CALL_BEGIN_CAPTURE;
    if (begins(rest, "StreamEndCapture")) wanted |= KPTI_CALL_END_CAPTURE;
    return wanted;
}

/* Removes the version suffix of a runtime function's name, which programs do not write. */
static kpt_str without_version(const char *name)
{
    kpt_str text = kpt_str_of(name);
    size_t end = text.size;
    while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9')
        end--;
    if (end < text.size && end > 2 && name[end - 1] == 'v' && name[end - 2] == '_')
        text.size = end - 2;
    return text;
}

void kpti_calls_learn(const kpti_cupti *cupti)
{
    if (learned) return;
    for (uint32_t domain = CUPTI_CB_DOMAIN_DRIVER_API; domain <= CUPTI_CB_DOMAIN_RUNTIME_API;
         domain++)
        for (uint32_t cbid = 1; cbid < KPTI_MAX_CALLS; cbid++) {
            const char *name = NULL;
            if (cupti->cuptiGetCallbackName((CUpti_CallbackDomain)domain, cbid, &name) !=
                    CUPTI_SUCCESS ||
                !name)
                continue;
            rows[domain - 1][cbid] = (kpti_call_row){
                domain == CUPTI_CB_DOMAIN_RUNTIME_API ? without_version(name) : kpt_str_of(name),
                kpti_call_wanted(domain, name)};
        }
    learned = 1;
}

const kpti_call_row *kpti_call_of(uint32_t domain, uint32_t cbid)
{
    return &rows[domain - 1][cbid < KPTI_MAX_CALLS ? cbid : 0];
}
