/* step_finder.h: a sink that finds the steps of a program in a delivery.
 *
 *   init ──> batch, batch, … (as a delivery's sink, in KPT_ORDER_TIME with points and ranges) ──> steps ──> free
 *
 * If there are annotations ProfilerStep#N, the steps are those. Otherwise they are the spans named "step". Otherwise a
 * step lasts from the end of one optimizer step (an annotation Optimizer.step#NAME) to the end of the next on the same
 * thread, and the first one from the thread's first activity; of several optimizers, the one with the most steps is the
 * clock, and of those the first. A step inside another one on the same thread is not counted.
 *
 * Time grows with the number of activities, memory with the number of steps, and by 4 bytes with each name up to the last
 * that names a step. One thread at a time; no Python, no GIL. */
#ifndef KPTI_WRITERS_OPERATORS_STEP_FINDER_H
#define KPTI_WRITERS_OPERATORS_STEP_FINDER_H

#include "abi/kpt_activity.h"
#include "core/base/u64_map.h"
#include "writers/annotations/notes.h"
#include "writers/operators/step_source.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_step {
    int64_t start_ns;
    int64_t end_ns;
    uint64_t
        number; /* the N of ProfilerStep#N; of other steps from 0, in the order of their start */
    uint32_t thread; /* index of a kpt_thread; of a span the one where it began */
    kpti_step_source source;
    /* KPT_ACTIVITY_BEGAN_BEFORE: the start is not known, and start_ns is the first known time;
     * KPT_ACTIVITY_ENDED_BY_STOP: the end is not known. */
    uint32_t flags;
    uint32_t label; /* for kpti_step_finder_name */
} kpti_step;

enum { KPTI_MAX_STEP_NAME = 40 };

typedef struct kpti_step_finder {
    kpti_heap heap;
    const kpti_notes *notes;
    struct kpti_step_label *labels; /* what names of steps say */
    uint32_t label_capacity;
    uint32_t label_count;
    uint32_t *label_of; /* by index of a name: index + 1 of a label; 0: it names no step */
    uint32_t label_of_capacity;
    kpti_u64_map optimizer_of; /* by text: index + 1 of a label */
    kpti_u64_map span_of;      /* by number of the begin: index + 1 of a step */
    kpti_step *steps;          /* of all sources, until kpti_step_finder_steps is called */
    uint32_t step_capacity;
    uint32_t step_count;
    struct kpti_open_step *open; /* annotations that have not ended */
    uint32_t open_capacity;
    uint32_t open_count;
    struct kpti_step_thread *threads; /* by index */
    uint32_t thread_capacity;
    int64_t last_ns; /* the latest time of all activities */
    int is_finished;
} kpti_step_finder;

/* NOTES are those that the delivery's points refer to, until free. */
void kpti_step_finder_init(kpti_step_finder *finder, const kpti_heap *heap,
                           const kpti_notes *notes);
void kpti_step_finder_free(kpti_step_finder *finder);

/* A kpt_batch_fn. FINDER is a kpti_step_finder. Returns KPT_OK, KPT_E_MEMORY, KPT_E_SIZE, KPT_E_LIMIT, or
 * KPT_E_UNSUPPORTED for another order. */
kpt_status kpti_step_finder_batch(void *finder, const kpt_batch *batch);

/* Parts of it, for a sink that goes through the activities itself: the names of a batch; the time of a thread's first
 * activity; a point or a range, any other activity does nothing. The sink sets last_ns before it asks for the steps. */
kpt_status kpti_step_finder_names(kpti_step_finder *finder, const kpt_batch *batch);
kpt_status kpti_step_finder_thread(kpti_step_finder *finder, uint32_t thread, int64_t first_ns);
kpt_status kpti_step_finder_marker(kpti_step_finder *finder, const kpt_activity *a);

/* After the last batch: returns *COUNT steps in the order of their start. The finder owns them. */
const kpti_step *kpti_step_finder_steps(kpti_step_finder *finder, uint32_t *count);

/* Returns the name of STEP for display, in BUFFER or owned by the finder: "ProfilerStep#3", "step", "Optimizer.step#SGD.step". */
kpt_str kpti_step_finder_name(const kpti_step_finder *finder, const kpti_step *step,
                              char buffer[KPTI_MAX_STEP_NAME]);

#ifdef __cplusplus
}
#endif
#endif
