/* perfetto_tasks.h: asyncio tasks in a Perfetto trace. Only the Perfetto writer uses this. */
#ifndef KPTI_WRITERS_PERFETTO_PERFETTO_TASKS_H
#define KPTI_WRITERS_PERFETTO_PERFETTO_TASKS_H

#include "writers/perfetto/perfetto_state.h"

kpt_status kpti_perfetto_task_point(kpti_perfetto *writer, kpti_perfetto_track *track_state,
                                    const kpt_activity *point, const kpti_note *note);
/* Call it when CALL has ended, which may be the resume of a task. */
void kpti_perfetto_task_end(kpti_perfetto *writer, kpti_perfetto_track *track_state,
                            const kpt_activity *call);

#endif
