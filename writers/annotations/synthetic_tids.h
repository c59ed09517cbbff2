/* synthetic_tids.h: thread ids for threads without an id of the system. Ids of Linux are below 2^22. */
#ifndef KPTI_WRITERS_ANNOTATIONS_SYNTHETIC_TIDS_H
#define KPTI_WRITERS_ANNOTATIONS_SYNTHETIC_TIDS_H

#include <stdint.h>

/* Greenlets are delivered as threads with ids above this one. */
enum { KPTI_BEFORE_GREENLET_TIDS = 20000000 };

static inline uint64_t kpti_made_up_tid(uint32_t thread)
{
    return UINT64_C(10000000) + thread;
}

static inline int kpti_is_greenlet_tid(uint64_t os_tid)
{
    return os_tid > KPTI_BEFORE_GREENLET_TIDS;
}

#endif
