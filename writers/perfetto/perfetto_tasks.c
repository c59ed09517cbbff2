/* perfetto_tasks.c: asyncio tasks in a Perfetto trace. Each task has a track, on which its resumes are slices. A flow
 * leads from one resume to the next. */
#include "writers/perfetto/perfetto_tasks.h"

#include "writers/perfetto/perfetto_packets.h"
#include "writers/perfetto/perfetto_tracks.h"

/* Returns the task's track in *OUT, made when it is first needed. *OUT is NULL with KPT_OK if there are too
 * many. */
static kpt_status track_of(kpti_perfetto *w, const kpti_note *note, uint32_t task,
                           kpti_task_track **out)
{
    char text[KPTI_MAX_TASK_NAME];
    kpt_status status = kpti_task_tracks_resume(&w->task_tracks, w->base.notes, task, out);
    if (*out && (*out)->resumes == 1)
        (*out)->track = kpti_perfetto_make_track(w, kpti_task_name(note, text), 0);
    return status;
}

/* In time order, a point is delivered after the begin of its call. That call must be the last that began. */
kpt_status kpti_perfetto_task_point(kpti_perfetto *w, kpti_perfetto_track *t,
                                    const kpt_activity *point, const kpti_note *note)
{
    const kpt_str name = note->args.size ? note->args : note->name;
    kpti_perfetto_event event;
    kpti_task_track *track;
    kpt_status status;
    int is_new;
    char *at;
    if (t->begun_id != point->parent_id || t->begun_ns != point->start_ns) return KPT_OK;
    status = kpti_resumes_point(&w->resumes, point, &is_new);
    if (status != KPT_OK || !is_new) return status;
    status = track_of(w, note, (uint32_t)point->value0, &track);
    if (!track) return status;
    at = kpti_perfetto_open(w, t, point->start_ns, EVENT_BEGIN, KPTI_PERFETTO_MAX_NAME, &event);
    at = kpti_proto_number(at, EVENT_TRACK, track->track);
    at = kpti_proto_text(at, EVENT_CATEGORY, kpt_str_of("asyncio_task"), SIZE_MAX);
    at = kpti_proto_text(at, EVENT_NAME, name, KPTI_PERFETTO_MAX_NAME / KPTI_UTF8_MAX_GROWTH);
    at = kpti_proto_fixed64(at, EVENT_FLOW, track->track);
    kpti_perfetto_close(w, &event, at);
    return KPT_OK;
}

void kpti_perfetto_task_end(kpti_perfetto *w, kpti_perfetto_track *t, const kpt_activity *call)
{
    kpti_perfetto_event event;
    const kpti_task_track *track;
    kpti_resume resume;
    char *at;
    if (!kpti_resumes_end(&w->resumes, call, &resume)) return;
    track = &w->task_tracks.items[resume.task - w->task_tracks.first];
    if (!track->track) return;
    at = kpti_perfetto_open(w, t, call->end_ns, EVENT_END, 0, &event);
    kpti_perfetto_close(w, &event, kpti_proto_number(at, EVENT_TRACK, track->track));
}
