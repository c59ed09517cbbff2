#include "writers/annotations/task_resumes.h"

/* The open resumes of a thread, innermost last. A task may start another task within its resume. */
typedef struct kpti_resume_track {
    kpti_resume *items;
    uint32_t count;
    uint32_t capacity;
} track_state;

kpt_status kpti_resumes_point(kpti_resumes *r, const kpt_activity *point, int *is_new)
{
    const uint32_t task = (uint32_t)point->value0;
    kpt_status status = kpti_array_reach(&r->heap, &r->track_states, &r->track_capacity,
                                         point->thread, sizeof *r->track_states);
    track_state *l;
    *is_new = 0;
    if (status != KPT_OK) return status;
    l = &r->track_states[point->thread];
    /* A call begins one resume. The earlier point belonged to another call, which was not delivered. */
    while (l->count && l->items[l->count - 1].call_id == point->parent_id) {
        l->count--;
        r->open--;
    }
    for (uint32_t i = 0; i < l->count; i++)
        if (l->items[i].task == task) return KPT_OK;
    status = kpti_array_reach(&r->heap, &l->items, &l->capacity, l->count, sizeof *l->items);
    if (status != KPT_OK) return status;
    l->items[l->count++] = (kpti_resume){point->parent_id, point->start_ns, task};
    r->open++;
    *is_new = 1;
    return KPT_OK;
}

int kpti_resumes_end_slow(kpti_resumes *r, const kpt_activity *call, kpti_resume *out)
{
    track_state *l = call->thread < r->track_capacity ? &r->track_states[call->thread] : NULL;
    if (!l || !l->count || l->items[l->count - 1].call_id != call->id) return 0;
    *out = l->items[--l->count];
    r->open--;
    return out->start_ns == call->start_ns;
}

void kpti_resumes_free(kpti_resumes *r)
{
    for (uint32_t i = 0; i < r->track_capacity; i++)
        kpti_heap_give(&r->heap, r->track_states[i].items,
                       r->track_states[i].capacity * sizeof *r->track_states[i].items);
    kpti_heap_give(&r->heap, r->track_states, r->track_capacity * sizeof *r->track_states);
    r->track_states = NULL;
    r->track_capacity = r->open = 0;
}
