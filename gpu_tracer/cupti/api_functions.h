/* api_functions.h: the functions of the CUDA APIs by CUPTI's numbers: what each is called, and what is wanted of it.
 * They are told apart by their names, as CUPTI tells them: every version has more than the last. */
#ifndef KPTI_GPU_TRACER_CUPTI_API_FUNCTIONS_H
#define KPTI_GPU_TRACER_CUPTI_API_FUNCTIONS_H

#include "gpu_tracer/cupti/cupti_library.h"

enum {
    KPTI_CALL_KEPT = 1 << 0,   /* it becomes an event */
    KPTI_CALL_STACK = 1 << 1,  /* where it was made from is gathered */
    KPTI_CALL_KERNEL = 1 << 2, /* it starts a kernel, unless it fails or is captured */
    KPTI_CALL_BEGIN_CAPTURE = 1 << 3,
    KPTI_CALL_END_CAPTURE = 1 << 4,
    KPTI_CALL_GRAPH = 1 << 5 /* it starts what a graph has, of which any number comes */
};

enum { KPTI_MOST_CALLS = 2048 };

typedef struct kpti_call_row {
    kpt_str name;
    uint32_t wanted; /* KPTI_CALL_* */
} kpti_call_row;

/* Asks CUPTI for all names, the first time. */
void kpti_calls_learn(const kpti_cupti *cupti);

/* The row of a function of the domain, CUPTI_CB_DOMAIN_DRIVER_API or …_RUNTIME_API. */
const kpti_call_row *kpti_call_of(uint32_t domain, uint32_t cbid);

/* What is wanted of the function NAME. A function of its own for tests. */
uint32_t kpti_call_wanted(uint32_t domain, const char *name);

#endif
