#include "writers/annotations/task_profile.h"

#include "core/base/batch_records.h"
#include "writers/annotations/task_resumes.h"

struct kpti_task_profile {
    kpti_heap heap;
    kpt_status status; /* the first failure */
    const kpti_notes *notes;
    uint32_t first; /* number of the first note */
    kpti_resumes resumes;
    kpti_task_row *rows; /* by number of the note, from first on */
    uint32_t row_capacity;
};

static kpt_status take_point(kpti_task_profile *p, const kpt_activity *point)
{
    const kpti_note *note = kpti_notes_get(p->notes, point->value0);
    int is_new;
    if (!note || note->what != KPTI_NOTE_TASK) return KPT_OK;
    return kpti_resumes_point(&p->resumes, point, &is_new);
}

static kpt_status take_call(kpti_task_profile *p, const kpt_activity *a)
{
    kpti_resume resume;
    kpti_task_row *row;
    kpt_status status;
    if (!kpti_resumes_end(&p->resumes, a, &resume)) return KPT_OK;
    status = kpti_array_reach(&p->heap, &p->rows, &p->row_capacity, resume.task - p->first,
                              sizeof *p->rows);
    if (status != KPT_OK) return status;
    row = &p->rows[resume.task - p->first];
    if (!row->task) *row = (kpti_task_row){resume.task, 0, 0, a->start_ns, a->end_ns};
    row->resumes++;
    row->running_ns += (uint64_t)a->end_ns - (uint64_t)a->start_ns;
    if (a->start_ns < row->first_ns) row->first_ns = a->start_ns;
    if (a->end_ns > row->last_ns) row->last_ns = a->end_ns;
    return KPT_OK;
}

kpt_status kpti_task_profile_batch(void *profile, const kpt_batch *batch)
{
    kpti_task_profile *p = profile;
    if (p->status == KPT_OK && !kpti_records_can_read(batch)) p->status = KPT_E_SIZE;
    for (uint32_t i = 0; i < batch->activity_count && p->status == KPT_OK; i++) {
        const kpt_activity *a = kpti_record(batch->activities, batch->activity_stride, i);
        p->status = a->kind == KPT_KIND_POINT ? take_point(p, a) : take_call(p, a);
    }
    return p->status;
}

void kpti_task_profile_notes(kpti_task_profile *p, const kpti_notes *notes)
{
    p->notes = notes;
    p->first = kpti_notes_first(notes);
}

const kpti_task_row *kpti_task_profile_rows(const kpti_task_profile *p, uint32_t *count)
{
    *count = p->row_capacity;
    return p->rows;
}

kpt_status kpti_task_profile_open(const kpti_heap *heap, kpti_task_profile **out)
{
    kpti_task_profile *p = kpti_heap_take(heap, sizeof *p);
    *out = p;
    if (!p) return KPT_E_MEMORY;
    *p = (kpti_task_profile){.heap = *heap, .resumes = {.heap = *heap}};
    return KPT_OK;
}

void kpti_task_profile_free(kpti_task_profile *p)
{
    kpti_heap heap;
    if (!p) return;
    heap = p->heap;
    kpti_resumes_free(&p->resumes);
    kpti_heap_give(&heap, p->rows, p->row_capacity * sizeof *p->rows);
    kpti_heap_give(&heap, p, sizeof *p);
}
