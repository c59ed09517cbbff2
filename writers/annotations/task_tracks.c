#include "writers/annotations/task_tracks.h"

#include <stdio.h>

kpt_status kpti_task_tracks_resume(kpti_task_tracks *t, const kpti_notes *notes, uint32_t task,
                                   kpti_task_track **out)
{
    kpt_status status;
    *out = NULL;
    if (!t->first) t->first = kpti_notes_first(notes);
    status = kpti_array_reach(&t->heap, &t->items, &t->capacity, task - t->first, sizeof *t->items);
    if (status != KPT_OK) return status;
    if (t->items[task - t->first].resumes++ == 0) {
        if (t->count < KPTI_MAX_TASK_TRACKS)
            t->items[task - t->first].track = ++t->count;
        else
            t->without++;
    }
    if (t->items[task - t->first].track) *out = &t->items[task - t->first];
    return KPT_OK;
}

void kpti_task_tracks_free(kpti_task_tracks *t)
{
    kpti_heap_give(&t->heap, t->items, t->capacity * sizeof *t->items);
    t->items = NULL;
    t->capacity = t->first = t->count = t->without = 0;
}

kpt_str kpti_task_name(const kpti_note *note, char text[KPTI_MAX_TASK_NAME])
{
    enum { HALF = KPTI_MAX_TASK_NAME / 2 - 1 };
    const int name_size = note->name.size < HALF ? (int)note->name.size : HALF;
    const int args_size = note->args.size < HALF ? (int)note->args.size : HALF;
    const int size = snprintf(text, KPTI_MAX_TASK_NAME, "%.*s%s%.*s", name_size,
                              name_size ? note->name.data : "", name_size && args_size ? " " : "",
                              args_size, args_size ? note->args.data : "");
    return (kpt_str){text, size > 0 ? (uint64_t)size : 0};
}
