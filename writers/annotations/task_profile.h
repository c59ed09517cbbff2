/* task_profile.h: a sink that adds up a delivery by asyncio task: how often the task was resumed, how long it
 * ran, and when it ran first and last.
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
    uint32_t task; /* number of its note; 0: empty row */
    uint64_t resumes;
    uint64_t running_ns;
    int64_t first_ns; /* begin of its first resume */
    int64_t last_ns;  /* end of its last resume */
} kpti_task_row;

/* Returns KPT_OK and sets *OUT, which the caller frees, or returns KPT_E_MEMORY. */
kpt_status kpti_task_profile_open(const kpti_heap *heap, kpti_task_profile **out);

/* Passes the notes that points refer to, before the first batch. They are borrowed until the last batch. */
void kpti_task_profile_notes(kpti_task_profile *profile, const kpti_notes *notes);

/* A kpt_batch_fn. PROFILE is a kpti_task_profile. */
kpt_status kpti_task_profile_batch(void *profile, const kpt_batch *batch);

/* After the last batch: returns *COUNT rows, some of them empty. The profile owns them. */
const kpti_task_row *kpti_task_profile_rows(const kpti_task_profile *profile, uint32_t *count);

void kpti_task_profile_free(kpti_task_profile *profile);

#ifdef __cplusplus
}
#endif
#endif
