#include "writers/chrome/chrome_tasks.h"

#include "writers/chrome/chrome_events.h"

#define PUT KPTI_PUT

/* After those of threads, real and synthetic. Viewers accept numbers of 31 bits. */
enum { FIRST_TID = 100000000, FIRST_SORT_INDEX = 1000000 };

void kpti_chrome_tasks_init(kpti_chrome_tasks *t, kpti_writer *writer)
{
    t->writer = writer;
    t->resumes.heap = t->tracks.heap = writer->heap;
}

kpt_status kpti_chrome_tasks_point(kpti_chrome_tasks *t, const kpt_activity *point)
{
    int is_new;
    return kpti_resumes_point(&t->resumes, point, &is_new);
}

static char *put_metadata(const kpti_chrome_tasks *t, char *at, const char *what, uint64_t tid)
{
    at = kpti_chrome_escape(PUT(at, ",\n{\"ph\":\"M\",\"name\":\""), kpt_str_of(what));
    at = kpti_put_u64(PUT(at, "\",\"pid\":"), t->writer->pid);
    at = kpti_put_u64(PUT(at, ",\"tid\":"), tid);
    return PUT(at, ",\"args\":{");
}

static void name_track(kpti_chrome_tasks *t, const kpti_note *note, uint64_t track)
{
    char text[KPTI_MAX_TASK_NAME];
    char *at = kpti_out_reserve(&t->writer->out, KPTI_MAX_TASK_NAME * KPTI_JSON_MAX_GROWTH +
                                                     2 * KPTI_CHROME_MAX_REST);
    at = put_metadata(t, at, "thread_name", FIRST_TID + track);
    at = kpti_chrome_escape(PUT(at, "\"name\":\""), kpti_task_name(note, text));
    at = put_metadata(t, PUT(at, "\"}}"), "thread_sort_index", FIRST_TID + track);
    at = kpti_put_u64(PUT(at, "\"sort_index\":"), FIRST_SORT_INDEX + track);
    kpti_out_wrote(&t->writer->out, PUT(at, "}}"));
}

static void put_resume(kpti_chrome_tasks *t, const kpti_note *note, const kpti_task_track *track,
                       const kpt_activity *call, uint32_t tid)
{
    const kpt_str name = note->args.size ? note->args : note->name;
    char *at = kpti_out_reserve(&t->writer->out,
                                KPTI_CHROME_MAX_NAME * KPTI_JSON_MAX_GROWTH + KPTI_CHROME_MAX_REST);
    at = kpti_chrome_escape(PUT(at, ",\n{\"ph\":\"X\",\"cat\":\"asyncio_task\",\"name\":\""), name);
    at = kpti_put_u64(PUT(at, "\",\"pid\":"), t->writer->pid);
    at = kpti_put_u64(PUT(at, ",\"tid\":"), FIRST_TID + track->track);
    at = kpti_put_us_between(PUT(at, ",\"ts\":"), t->writer->base_ns, call->start_ns);
    at = kpti_put_us_between(PUT(at, ",\"dur\":"), call->start_ns, call->end_ns);
    at = kpti_put_u64(PUT(at, ",\"args\":{\"resume\":"), track->resumes);
    at = kpti_put_u64(PUT(at, ",\"call\":"), call->id);
    at = kpti_put_u64(PUT(at, ",\"thread\":"), tid);
    kpti_out_wrote(&t->writer->out, PUT(at, "}}"));
}

kpt_status kpti_chrome_tasks_call_slow(kpti_chrome_tasks *t, const kpt_activity *call, uint32_t tid)
{
    const kpti_note *note;
    kpti_task_track *track;
    kpti_resume resume;
    kpt_status status;
    if (!kpti_resumes_end(&t->resumes, call, &resume)) return KPT_OK;
    note = kpti_notes_get(t->writer->notes, resume.task);
    status = kpti_task_tracks_resume(&t->tracks, t->writer->notes, resume.task, &track);
    if (!track) return status;
    if (track->resumes == 1) name_track(t, note, track->track);
    put_resume(t, note, track, call, tid);
    return KPT_OK;
}

void kpti_chrome_tasks_free(kpti_chrome_tasks *t)
{
    kpti_resumes_free(&t->resumes);
    kpti_task_tracks_free(&t->tracks);
}
