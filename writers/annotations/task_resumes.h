/* task_resumes.h: finds the calls that are resumes of asyncio tasks. A task's point is inside the call that is
 * the resume, and has its start time. If the times differ, the resume itself was not delivered. A coroutine
 * that a task runs itself, within one of its resumes, does not begin another resume.
 *
 * Points are delivered in time order, each before the end of its call. Only writers use this. */
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
    uint32_t task; /* number of its note */
} kpti_resume;

/* Zeroed at first, except for heap. */
typedef struct kpti_resumes {
    kpti_heap heap;
    struct kpti_resume_track *track_states; /* by thread */
    uint32_t track_capacity;
    uint32_t open; /* open resumes of all tracks */
} kpti_resumes;

/* Records the point of a task. *IS_NEW is set if a resume begins with the point's call; else POINT must be
 * ignored. */
kpt_status kpti_resumes_point(kpti_resumes *resumes, const kpt_activity *point, int *is_new);

/* Call it when a call ends, or for a complete call. Returns 1 and fills OUT if the call was a resume. */
int kpti_resumes_end_slow(kpti_resumes *resumes, const kpt_activity *call, kpti_resume *out);
static inline int kpti_resumes_end(kpti_resumes *resumes, const kpt_activity *call,
                                   kpti_resume *out)
{
    return resumes->open && kpti_resumes_end_slow(resumes, call, out);
}

/* Frees and resets RESUMES, so that another process may follow. */
void kpti_resumes_free(kpti_resumes *resumes);

#ifdef __cplusplus
}
#endif
#endif
