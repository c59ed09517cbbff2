/* layout.c: records of every version of CUPTI from CUDA 12 on are read by one source. Compiled against the
 * headers of 12 and of 13, with the newest struct of each: what convert.c reads lies where it did. */
#include <cuda.h>
#include <cupti.h>
#include <stddef.h>

#if LAYOUT_MAJOR == 13
typedef CUpti_ActivityKernel13 newest_kernel;
typedef CUpti_ActivityMemcpy7 newest_memcpy;
typedef CUpti_ActivityMemset5 newest_memset;
#else
typedef CUpti_ActivityKernel9 newest_kernel;
typedef CUpti_ActivityMemcpy6 newest_memcpy;
typedef CUpti_ActivityMemset4 newest_memset;
#endif
typedef CUpti_ActivityMemcpyPtoP4 newest_peer_memcpy;
typedef CUpti_ActivitySynchronization2 newest_wait;
typedef CUpti_ActivityOverhead3 newest_overhead;

/* As the struct that convert.c reads, and where that was in 12.9, so that both builds agree. */
#define SAME(type, newest, field, offset)                                                    \
    _Static_assert(offsetof(type, field) == (offset) && offsetof(newest, field) == (offset), \
                   #type "." #field " is elsewhere")

SAME(CUpti_ActivityKernel9, newest_kernel, kind, 0);
SAME(CUpti_ActivityKernel9, newest_kernel, start, 16);
SAME(CUpti_ActivityKernel9, newest_kernel, end, 24);
SAME(CUpti_ActivityKernel9, newest_kernel, deviceId, 40);
SAME(CUpti_ActivityKernel9, newest_kernel, contextId, 44);
SAME(CUpti_ActivityKernel9, newest_kernel, streamId, 48);
SAME(CUpti_ActivityKernel9, newest_kernel, gridX, 52);
SAME(CUpti_ActivityKernel9, newest_kernel, gridY, 56);
SAME(CUpti_ActivityKernel9, newest_kernel, gridZ, 60);
SAME(CUpti_ActivityKernel9, newest_kernel, blockX, 64);
SAME(CUpti_ActivityKernel9, newest_kernel, blockY, 68);
SAME(CUpti_ActivityKernel9, newest_kernel, blockZ, 72);
SAME(CUpti_ActivityKernel9, newest_kernel, registersPerThread, 6);
SAME(CUpti_ActivityKernel9, newest_kernel, staticSharedMemory, 76);
SAME(CUpti_ActivityKernel9, newest_kernel, dynamicSharedMemory, 80);
SAME(CUpti_ActivityKernel9, newest_kernel, localMemoryPerThread, 84);
SAME(CUpti_ActivityKernel9, newest_kernel, correlationId, 92);
SAME(CUpti_ActivityKernel9, newest_kernel, name, 104);
SAME(CUpti_ActivityKernel9, newest_kernel, graphNodeId, 144);
SAME(CUpti_ActivityKernel9, newest_kernel, graphId, 156);
SAME(CUpti_ActivityMemcpy5, newest_memcpy, kind, 0);
SAME(CUpti_ActivityMemcpy5, newest_memcpy, copyKind, 4);
SAME(CUpti_ActivityMemcpy5, newest_memcpy, srcKind, 5);
SAME(CUpti_ActivityMemcpy5, newest_memcpy, dstKind, 6);
SAME(CUpti_ActivityMemcpy5, newest_memcpy, flags, 7);
SAME(CUpti_ActivityMemcpy5, newest_memcpy, bytes, 8);
SAME(CUpti_ActivityMemcpy5, newest_memcpy, start, 16);
SAME(CUpti_ActivityMemcpy5, newest_memcpy, end, 24);
SAME(CUpti_ActivityMemcpy5, newest_memcpy, deviceId, 32);
SAME(CUpti_ActivityMemcpy5, newest_memcpy, contextId, 36);
SAME(CUpti_ActivityMemcpy5, newest_memcpy, streamId, 40);
SAME(CUpti_ActivityMemcpy5, newest_memcpy, correlationId, 44);
SAME(CUpti_ActivityMemcpy5, newest_memcpy, graphNodeId, 64);
SAME(CUpti_ActivityMemcpy5, newest_memcpy, graphId, 72);
SAME(CUpti_ActivityMemcpyPtoP4, newest_peer_memcpy, kind, 0);
SAME(CUpti_ActivityMemcpyPtoP4, newest_peer_memcpy, copyKind, 4);
SAME(CUpti_ActivityMemcpyPtoP4, newest_peer_memcpy, srcKind, 5);
SAME(CUpti_ActivityMemcpyPtoP4, newest_peer_memcpy, dstKind, 6);
SAME(CUpti_ActivityMemcpyPtoP4, newest_peer_memcpy, flags, 7);
SAME(CUpti_ActivityMemcpyPtoP4, newest_peer_memcpy, bytes, 8);
SAME(CUpti_ActivityMemcpyPtoP4, newest_peer_memcpy, start, 16);
SAME(CUpti_ActivityMemcpyPtoP4, newest_peer_memcpy, end, 24);
SAME(CUpti_ActivityMemcpyPtoP4, newest_peer_memcpy, deviceId, 32);
SAME(CUpti_ActivityMemcpyPtoP4, newest_peer_memcpy, contextId, 36);
SAME(CUpti_ActivityMemcpyPtoP4, newest_peer_memcpy, streamId, 40);
SAME(CUpti_ActivityMemcpyPtoP4, newest_peer_memcpy, correlationId, 60);
SAME(CUpti_ActivityMemcpyPtoP4, newest_peer_memcpy, graphNodeId, 72);
SAME(CUpti_ActivityMemcpyPtoP4, newest_peer_memcpy, graphId, 80);
SAME(CUpti_ActivityMemset4, newest_memset, kind, 0);
SAME(CUpti_ActivityMemset4, newest_memset, value, 4);
SAME(CUpti_ActivityMemset4, newest_memset, bytes, 8);
SAME(CUpti_ActivityMemset4, newest_memset, start, 16);
SAME(CUpti_ActivityMemset4, newest_memset, end, 24);
SAME(CUpti_ActivityMemset4, newest_memset, deviceId, 32);
SAME(CUpti_ActivityMemset4, newest_memset, contextId, 36);
SAME(CUpti_ActivityMemset4, newest_memset, streamId, 40);
SAME(CUpti_ActivityMemset4, newest_memset, correlationId, 44);
SAME(CUpti_ActivityMemset4, newest_memset, flags, 48);
SAME(CUpti_ActivityMemset4, newest_memset, memoryKind, 50);
SAME(CUpti_ActivityMemset4, newest_memset, graphNodeId, 64);
SAME(CUpti_ActivityMemset4, newest_memset, graphId, 72);
SAME(CUpti_ActivitySynchronization, newest_wait, kind, 0);
SAME(CUpti_ActivitySynchronization, newest_wait, type, 4);
SAME(CUpti_ActivitySynchronization, newest_wait, start, 8);
SAME(CUpti_ActivitySynchronization, newest_wait, end, 16);
SAME(CUpti_ActivitySynchronization, newest_wait, correlationId, 24);
SAME(CUpti_ActivitySynchronization, newest_wait, contextId, 28);
SAME(CUpti_ActivitySynchronization, newest_wait, streamId, 32);
SAME(CUpti_ActivitySynchronization, newest_wait, cudaEventId, 36);
SAME(CUpti_ActivityOverhead, newest_overhead, kind, 0);
SAME(CUpti_ActivityOverhead, newest_overhead, overheadKind, 4);
SAME(CUpti_ActivityOverhead, newest_overhead, objectKind, 8);
SAME(CUpti_ActivityOverhead, newest_overhead, objectId, 12);
SAME(CUpti_ActivityOverhead, newest_overhead, start, 24);
SAME(CUpti_ActivityOverhead, newest_overhead, end, 32);
SAME(CUpti_ActivityAPI, CUpti_ActivityAPI, kind, 0);
SAME(CUpti_ActivityAPI, CUpti_ActivityAPI, cbid, 4);
SAME(CUpti_ActivityAPI, CUpti_ActivityAPI, start, 8);
SAME(CUpti_ActivityAPI, CUpti_ActivityAPI, end, 16);
SAME(CUpti_ActivityAPI, CUpti_ActivityAPI, threadId, 28);
SAME(CUpti_ActivityAPI, CUpti_ActivityAPI, correlationId, 32);
SAME(CUpti_ActivityAPI, CUpti_ActivityAPI, returnValue, 36);
SAME(CUpti_ActivityMarker2, CUpti_ActivityMarker2, kind, 0);
SAME(CUpti_ActivityMarker2, CUpti_ActivityMarker2, flags, 4);
SAME(CUpti_ActivityMarker2, CUpti_ActivityMarker2, timestamp, 8);
SAME(CUpti_ActivityMarker2, CUpti_ActivityMarker2, id, 16);
SAME(CUpti_ActivityMarker2, CUpti_ActivityMarker2, objectKind, 20);
SAME(CUpti_ActivityMarker2, CUpti_ActivityMarker2, objectId, 24);
SAME(CUpti_ActivityMarker2, CUpti_ActivityMarker2, name, 40);
SAME(CUpti_ActivityName, CUpti_ActivityName, kind, 0);
SAME(CUpti_ActivityName, CUpti_ActivityName, objectKind, 4);
SAME(CUpti_ActivityName, CUpti_ActivityName, objectId, 8);
SAME(CUpti_ActivityName, CUpti_ActivityName, name, 24);
SAME(CUpti_ActivityExternalCorrelation, CUpti_ActivityExternalCorrelation, kind, 0);
SAME(CUpti_ActivityExternalCorrelation, CUpti_ActivityExternalCorrelation, externalId, 8);
SAME(CUpti_ActivityExternalCorrelation, CUpti_ActivityExternalCorrelation, correlationId, 16);
SAME(CUpti_CallbackData, CUpti_CallbackData, callbackSite, 0);
SAME(CUpti_CallbackData, CUpti_CallbackData, functionReturnValue, 24);
SAME(CUpti_CallbackData, CUpti_CallbackData, context, 40);
SAME(CUpti_CallbackData, CUpti_CallbackData, correlationId, 64);
SAME(CUpti_ResourceData, CUpti_ResourceData, context, 0);
