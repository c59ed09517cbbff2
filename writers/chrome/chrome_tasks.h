/* chrome_tasks.h: asyncio tasks in Chrome trace JSON. Each task is a thread of its own after the real ones. Its
 * resumes are complete events there, with the call and the thread in which they ran. Only the Chrome writer
 * uses this. */
#ifndef KPTI_WRITERS_CHROME_CHROME_TASKS_H
#define KPTI_WRITERS_CHROME_CHROME_TASKS_H

#include "writers/annotations/task_resumes.h"
#include "writers/annotations/task_tracks.h"
#include "writers/format/format.h"

typedef struct kpti_chrome_tasks {
    kpti_writer *writer;
    kpti_resumes resumes;
    kpti_task_tracks tracks;
} kpti_chrome_tasks;

void kpti_chrome_tasks_init(kpti_chrome_tasks *tasks, kpti_writer *writer);
kpt_status kpti_chrome_tasks_point(kpti_chrome_tasks *tasks, const kpt_activity *point);

/* For a CALL of the thread TID: writes it a second time, on the task's track, if it is a resume. */
kpt_status kpti_chrome_tasks_call_slow(kpti_chrome_tasks *tasks, const kpt_activity *call,
                                       uint32_t tid);
static inline kpt_status kpti_chrome_tasks_call(kpti_chrome_tasks *tasks, const kpt_activity *call,
                                                uint32_t tid)
{
    return tasks->resumes.open ? kpti_chrome_tasks_call_slow(tasks, call, tid) : KPT_OK;
}

void kpti_chrome_tasks_free(kpti_chrome_tasks *tasks);

#endif
