/* record_store.h: stores the converted records of CUPTI until they are collected. CUPTI's thread adds them
 * a buffer at a time; taking them out moves a few pointers. */
#ifndef KPTI_GPU_TRACER_RECORDS_RECORD_STORE_H
#define KPTI_GPU_TRACER_RECORDS_RECORD_STORE_H

#include <pthread.h>

#include "gpu_tracer/records/name_interner.h"
#include "gpu_tracer/records/spsc_list.h"

/* An API call, the most frequent event. */
typedef struct kpti_gpu_call {
    uint32_t kind; /* KPT_GPU_RUNTIME or KPT_GPU_DRIVER */
    uint32_t cbid;
    uint32_t os_tid;
    uint32_t correlation;
    uint32_t result;
    uint32_t spare;
    uint64_t start;
    uint64_t end;
} kpti_gpu_call;

/* The begin or the end of a range, or a mark. The begin and the end of a range have the same id. */
typedef struct kpti_gpu_mark {
    uint32_t flags; /* CUPTI_ACTIVITY_FLAG_MARKER_* */
    uint32_t id;
    uint64_t os_tid;
    uint64_t time;
    kpt_str name;
} kpti_gpu_mark;

/* An external correlation. */
typedef struct kpti_gpu_link {
    uint32_t correlation;
    uint32_t spare;
    uint64_t external;
} kpti_gpu_link;

/* The lists by their contents. Times are CUPTI's. */
enum {
    KPTI_GPU_EVENTS = 0, /* kpt_gpu_event: GPU activities, waits, overhead */
    KPTI_GPU_CALLS = 1,
    KPTI_GPU_MARKS = 2,
    KPTI_GPU_LINKS = 3,
    KPTI_GPU_NAMED = 4, /* kpt_gpu_name */
    KPTI_GPU_LISTS = 5
};

typedef struct kpti_gpu_lists {
    kpti_list of[KPTI_GPU_LISTS];
} kpti_gpu_lists;

typedef struct kpti_gpu_store {
    pthread_mutex_t lock; /* held for a few instructions; no foreign code runs under it */
    kpti_gpu_budget *budget;
    kpti_gpu_names names;
    kpti_gpu_lists lists;
    _Atomic uint64_t events; /* kept since the start */
} kpti_gpu_store;

void kpti_gpu_lists_init(kpti_gpu_lists *lists);
/* Appends FROM's items to INTO. */
void kpti_gpu_lists_splice(kpti_gpu_lists *into, kpti_gpu_lists *from);
void kpti_gpu_lists_free(kpti_gpu_lists *lists, kpti_gpu_budget *budget);

void kpti_record_store_init(kpti_gpu_store *store, kpti_gpu_budget *budget);
void kpti_record_store_free(kpti_gpu_store *store);
/* put appends LISTS to the store, and take appends the store's items to LISTS. The source is empty
 * afterwards. Any thread. */
void kpti_record_store_put(kpti_gpu_store *store, kpti_gpu_lists *lists);
void kpti_record_store_get(kpti_gpu_store *store, kpti_gpu_lists *lists);
/* Called in the child of a fork. The store is then empty. */
void kpti_record_store_forked(kpti_gpu_store *store);

#endif
