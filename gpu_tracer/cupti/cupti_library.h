/* cupti_library.h: CUPTI's functions, found at run time. kpytrace does not link to any CUDA library. */
#ifndef KPTI_GPU_TRACER_CUPTI_CUPTI_LIBRARY_H
#define KPTI_GPU_TRACER_CUPTI_CUPTI_LIBRARY_H

#include <cuda.h>
#include <cupti.h>

#include "abi/impl/kpti_impl.h"

/* The list of functions: KPTI_CUPTI(X) expands X(name, whether it is required) for each. */
#define KPTI_CUPTI(X)                                             \
    X(cuptiSubscribe, 1)                                          \
    X(cuptiUnsubscribe, 1)                                        \
    X(cuptiEnableCallback, 1)                                     \
    X(cuptiGetCallbackName, 1)                                    \
    X(cuptiGetResultString, 1)                                    \
    X(cuptiGetVersion, 1)                                         \
    X(cuptiGetTimestamp, 1)                                       \
    X(cuptiSetThreadIdType, 1)                                    \
    X(cuptiActivityEnable, 1)                                     \
    X(cuptiActivityDisable, 1)                                    \
    X(cuptiActivityFlushAll, 1)                                   \
    X(cuptiActivityGetNextRecord, 1)                              \
    X(cuptiActivityGetNumDroppedRecords, 1)                       \
    X(cuptiActivityRegisterCallbacks, 1)                          \
    X(cuptiActivityRegisterTimestampCallback, 0) /* since 11.6 */ \
    X(cuptiActivityEnableRuntimeApi, 0)          /* since 13.0 */ \
    X(cuptiActivityEnableDriverApi, 0)           /* likewise */

typedef CUptiResult (*kpti_cupti_cbid_fn)(CUpti_CallbackId cbid, uint8_t enable);
typedef CUptiResult (*kpti_cupti_timestamp_fn)(uint64_t (*now)(void));

/* The functions with CUPTI's types, except for those that the build's headers may be too old to declare. */
typedef struct kpti_cupti {
    __typeof__(&cuptiSubscribe) cuptiSubscribe;
    __typeof__(&cuptiUnsubscribe) cuptiUnsubscribe;
    __typeof__(&cuptiEnableCallback) cuptiEnableCallback;
    __typeof__(&cuptiGetCallbackName) cuptiGetCallbackName;
    __typeof__(&cuptiGetResultString) cuptiGetResultString;
    __typeof__(&cuptiGetVersion) cuptiGetVersion;
    __typeof__(&cuptiGetTimestamp) cuptiGetTimestamp;
    __typeof__(&cuptiSetThreadIdType) cuptiSetThreadIdType;
    __typeof__(&cuptiActivityEnable) cuptiActivityEnable;
    __typeof__(&cuptiActivityDisable) cuptiActivityDisable;
    __typeof__(&cuptiActivityFlushAll) cuptiActivityFlushAll;
    __typeof__(&cuptiActivityGetNextRecord) cuptiActivityGetNextRecord;
    __typeof__(&cuptiActivityGetNumDroppedRecords) cuptiActivityGetNumDroppedRecords;
    __typeof__(&cuptiActivityRegisterCallbacks) cuptiActivityRegisterCallbacks;
    kpti_cupti_timestamp_fn cuptiActivityRegisterTimestampCallback;
    kpti_cupti_cbid_fn cuptiActivityEnableRuntimeApi;
    kpti_cupti_cbid_fn cuptiActivityEnableDriverApi;
    uint32_t version; /* from cuptiGetVersion: 28 for 12.9, 130000 for 13.0 */
    char path[512];   /* of the library */
} kpti_cupti;

/* Returns 1 if an id of 0 means none, as since CUDA 13; before, all bits are set. */
static inline int kpti_cupti_zero_is_none(const kpti_cupti *cupti)
{
    return cupti->version >= 130000;
}

/* Opens the library at the first call, in the order that docs/gpu.md describes. The library stays loaded.
 * Returns KPT_E_UNSUPPORTED with the reason if it can't. Must not be called from several threads at once. */
kpt_status kpti_cupti_open(const kpti_cupti **out, kpti_error *error);

#endif
