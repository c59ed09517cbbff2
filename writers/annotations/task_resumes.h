/* task_resumes.h: which calls are resumes of asyncio's tasks. A point of a task lies in the call that is the
 * resume, and has its start time; of one that does not, the resume itself was not delivered. A coroutine
 * that a task drives by hand, within one of its resumes, begins no other.
 *
 * Points come in the order of time, each before its call's end. Only writers use this. */
#ifndef KPTI_WRITERS_ANNOTATIONS_TASK_RESUMES_H
#define KPTI_WRITERS_ANNOTATIONS_TASK_RESUMES_H

#include "abi/kpt_activity.h"
#include "core/base/growable_array.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_resume {
    uint64_t call_id;
    int64_t start_ns;
    uint32_t task; /* the number of its note */
} kpti_resume;

/* Begins as zeroes with a heap. */
typedef struct kpti_resumes {
    kpti_heap heap;
    struct kpti_resume_lane *lanes; /* by thread */
    uint32_t lane_capacity;
    uint32_t open; /* in all lanes */
} kpti_resumes;

/* The point of a task came. *IS_NEW: a resume begins, if its call does; else POINT is to be ignored. */
kpt_status kpti_resumes_point(kpti_resumes *resumes, const kpt_activity *point, int *is_new);

/* A call ends, or came as a whole. 1: it was a resume, which OUT has. */
int kpti_resumes_end_slow(kpti_resumes *resumes, const kpt_activity *call, kpti_resume *out);
static inline int kpti_resumes_end(kpti_resumes *resumes, const kpt_activity *call,
                                   kpti_resume *out)
{
    return resumes->open && kpti_resumes_end_slow(resumes, call, out);
}

/* As it began: another process may follow. */
void kpti_resumes_free(kpti_resumes *resumes);

#ifdef __cplusplus
}
#endif
#endif
