/* api_functions.h: the functions of the CUDA APIs by CUPTI's numbers: their names, and what to record of
 * each. They are classified by the names that CUPTI reports, since every version of CUDA adds functions. */
#ifndef KPTI_GPU_TRACER_CUPTI_API_FUNCTIONS_H
#define KPTI_GPU_TRACER_CUPTI_API_FUNCTIONS_H

#include "gpu_tracer/cupti/cupti_library.h"

enum {
    KPTI_CALL_KEPT = 1 << 0,   /* the call becomes an event */
    KPTI_CALL_STACK = 1 << 1,  /* the call's Python stack is gathered */
    KPTI_CALL_KERNEL = 1 << 2, /* the call starts a kernel, unless it fails or is captured */
    KPTI_CALL_BEGIN_CAPTURE = 1 << 3,
    KPTI_CALL_END_CAPTURE = 1 << 4,
    KPTI_CALL_GRAPH = 1 << 5, /* the call starts a graph, which may have any number of activities */
    KPTI_CALL_TIMED = 1 << 6  /* the call becomes an event with KPT_GPU_FEWER_CALLS, too */
};

enum { KPTI_MAX_CALLS = 2048 };

typedef struct kpti_call_row {
    kpt_str name;
    uint32_t wanted; /* KPTI_CALL_* */
} kpti_call_row;

/* Reads all names from CUPTI, at the first call. */
void kpti_calls_learn(const kpti_cupti *cupti);

/* Returns the row of a function of DOMAIN, which is CUPTI_CB_DOMAIN_DRIVER_API or …_RUNTIME_API. */
const kpti_call_row *kpti_call_of(uint32_t domain, uint32_t cbid);

/* Returns what to record of the function NAME. Public for tests. */
uint32_t kpti_call_wanted(uint32_t domain, const char *name);

#endif
