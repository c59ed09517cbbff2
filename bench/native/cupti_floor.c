/* cupti_floor.c: the least that recording kernels costs: CUPTI's records and callbacks, of which nothing is kept.
 * bench/measure/gpu_step.py compiles it, and enables one part for each letter. */
#include <cupti.h>
#include <stdlib.h>

enum { BUFFER = 8 << 20, ALIGN = 4096 };

static CUpti_SubscriberHandle subscriber;
static volatile uint64_t records;
static volatile uint64_t calls;

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *size, size_t *most_records)
{
    *buffer = aligned_alloc(ALIGN, BUFFER);
    *size = *buffer ? BUFFER : 0;
    *most_records = 0;
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                 size_t valid)
{
    CUpti_Activity *record = NULL;
    (void)context, (void)stream, (void)size;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
        records++;
    free(buffer);
}

static void CUPTIAPI on_call(void *ctx, CUpti_CallbackDomain domain, CUpti_CallbackId cbid,
                             const void *data)
{
    (void)ctx, (void)domain, (void)cbid, (void)data;
    calls++;
}

/* Enables or disables one part. Returns 0, or 1 if CUPTI refuses or the letter is unknown. */
static int switch_part(char part, int on)
{
    static const struct {
        char part;
        CUpti_ActivityKind kind;
    } kinds[] = {{'k', CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL},
                 {'m', CUPTI_ACTIVITY_KIND_MEMCPY},
                 {'m', CUPTI_ACTIVITY_KIND_MEMSET},
                 {'s', CUPTI_ACTIVITY_KIND_SYNCHRONIZATION},
                 {'r', CUPTI_ACTIVITY_KIND_RUNTIME},
                 {'d', CUPTI_ACTIVITY_KIND_DRIVER},
                 {'e', CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION},
                 {'o', CUPTI_ACTIVITY_KIND_OVERHEAD},
                 {'M', CUPTI_ACTIVITY_KIND_MARKER},
                 {'N', CUPTI_ACTIVITY_KIND_NAME}};
    static const CUpti_CallbackId launches[] = {
        CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000,
        CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernelExC_v11060};
    int known = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].part == part) {
            if ((on ? cuptiActivityEnable : cuptiActivityDisable)(kinds[i].kind) != CUPTI_SUCCESS)
                return 1;
            known = 1;
        }
    for (size_t i = 0; part == 'c' && i < sizeof launches / sizeof launches[0]; i++) {
        if (cuptiEnableCallback((uint32_t)on, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API,
                                launches[i]) != CUPTI_SUCCESS)
            return 1;
        known = 1;
    }
    return !known;
}

int cupti_floor_begin(const char *parts);
int cupti_floor_end(const char *parts);

int cupti_floor_begin(const char *parts)
{
    if (cuptiActivityRegisterCallbacks(give_buffer, take_buffer) != CUPTI_SUCCESS ||
        cuptiSubscribe(&subscriber, on_call, NULL) != CUPTI_SUCCESS)
        return 1;
    for (; *parts; parts++)
        if (switch_part(*parts, 1)) return 1;
    return 0;
}

/* Reads all records, and detaches from CUPTI, so that another tool can attach. */
int cupti_floor_end(const char *parts)
{
    int refused = cuptiActivityFlushAll(0) != CUPTI_SUCCESS;
    for (; *parts; parts++)
        refused |= switch_part(*parts, 0);
    return refused | (cuptiUnsubscribe(subscriber) != CUPTI_SUCCESS);
}
