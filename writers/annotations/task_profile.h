/* task_profile.h: a sink that adds up what a tracer delivers by task of asyncio: how often it was resumed,
 * how long it ran, and when first and last.
 *
 *   open ──> batch, batch, … (as a delivery's sink, in KPT_ORDER_THREAD, with points) ──> rows ──> free
 *
 * One thread at a time; no Python, no GIL. */
#ifndef KPTI_WRITERS_ANNOTATIONS_TASK_PROFILE_H
#define KPTI_WRITERS_ANNOTATIONS_TASK_PROFILE_H

#include "abi/kpt_activity.h"
#include "writers/annotations/notes.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_task_profile kpti_task_profile;

typedef struct kpti_task_row {
    uint32_t task; /* its note's number; 0: no row */
    uint64_t resumes;
    uint64_t running_ns;
    int64_t first_ns; /* when it was first resumed */
    int64_t last_ns;  /* when its last resume ended */
} kpti_task_row;

/* KPT_OK with *OUT, which is to be freed, or KPT_E_MEMORY. */
kpt_status kpti_task_profile_open(const kpti_heap *heap, kpti_task_profile **out);

/* Before the first batch: what points mean. They stay the caller's, until the last one came. */
void kpti_task_profile_notes(kpti_task_profile *profile, const kpti_notes *notes);

/* A kpt_batch_fn: PROFILE is a kpti_task_profile. */
kpt_status kpti_task_profile_batch(void *profile, const kpt_batch *batch);

/* Once all came: *COUNT rows, some of which are none. They are the profile's. */
const kpti_task_row *kpti_task_profile_rows(const kpti_task_profile *profile, uint32_t *count);

void kpti_task_profile_free(kpti_task_profile *profile);

#ifdef __cplusplus
}
#endif
#endif
