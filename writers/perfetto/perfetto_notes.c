#include "writers/perfetto/perfetto_notes.h"

#include <math.h>

#include "writers/perfetto/perfetto_packets.h"
#include "writers/perfetto/perfetto_tasks.h"
#include "writers/perfetto/perfetto_tracks.h"

enum { NOTE_ROOM = (KPTI_PERFETTO_MAX_NAME + KPTI_PERFETTO_MAX_ARGS) * KPTI_UTF8_MAX_GROWTH };

/* Writes the user's arguments, as JSON. */
static char *put_args(char *at, kpt_str args)
{
    char *annotation;
    char *text;
    if (!args.size || args.size > KPTI_PERFETTO_MAX_ARGS) return at;
    annotation = kpti_proto_open(at, EVENT_ANNOTATION);
    at = kpti_proto_text(annotation, ANNOTATION_NAME, kpt_str_of("args"), SIZE_MAX);
    text = kpti_proto_open(at, ANNOTATION_JSON);
    *text = '{';
    at = kpti_utf8_copy(text + 1, args.data, (size_t)args.size);
    *at++ = '}';
    return kpti_proto_close(annotation, kpti_proto_close(text, at));
}

static char *put_fields(const kpti_perfetto *w, char *at, const kpti_note *note)
{
    at = kpti_proto_text(at, EVENT_CATEGORY, kpt_str_of("user_annotation"), SIZE_MAX);
    at = kpti_proto_text(at, EVENT_NAME, note->name, KPTI_PERFETTO_MAX_NAME);
    if (note->flow) at = kpti_proto_fixed64(at, EVENT_FLOW, kpti_id_in_file(&w->base, note->flow));
    return put_args(at, note->args);
}

static void put_mark(kpti_perfetto *w, kpti_perfetto_track *t, const kpti_note *note, int64_t ns)
{
    kpti_perfetto_event event;
    char *at = kpti_perfetto_open(w, t, ns, EVENT_INSTANT, NOTE_ROOM, &event);
    at = put_fields(w, at, note);
    if (t == &w->own)
        at = kpti_perfetto_annotate(at, KPTI_ANNOTATION_THREAD, ANNOTATION_UINT, note->os_tid);
    kpti_perfetto_close(w, &event, at);
}

/* Infinities and NaN are left out; a track cannot display them. */
static kpt_status put_counter(kpti_perfetto *w, kpti_perfetto_track *t, const kpti_note *note,
                              int64_t ns)
{
    kpti_perfetto_event event;
    uint32_t *track = kpti_u64_map_at(&w->counters, kpti_text_key(note->name));
    uint64_t uuid;
    char *at;
    if (!track) return KPT_E_MEMORY;
    if (!isfinite(note->value)) return KPT_OK;
    if (!*track) {
        (void)kpti_perfetto_make_track(w, note->name, 1);
        *track = (uint32_t)w->made_tracks;
    }
    uuid = kpti_perfetto_made_track(w, *track - 1);
    at = kpti_perfetto_open(w, t, ns, EVENT_COUNTER, 0, &event);
    at = kpti_proto_number(at, EVENT_TRACK, uuid);
    at = kpti_proto_double(at, EVENT_DOUBLE, note->value);
    kpti_perfetto_close(w, &event, at);
    return KPT_OK;
}

static void begin_frame(kpti_perfetto *w, kpti_perfetto_track *t, const kpti_note *note, int64_t ns)
{
    kpti_perfetto_event event;
    char *at = kpti_perfetto_open(w, t, ns, EVENT_BEGIN, NOTE_ROOM, &event);
    kpti_perfetto_close(w, &event, put_fields(w, at, note));
}

static void put_frame_end(kpti_perfetto *w, kpti_perfetto_track *t, int64_t ns, uint32_t annotation)
{
    kpti_perfetto_event event;
    char *at = kpti_perfetto_open(w, t, ns, EVENT_END, 0, &event);
    if (annotation) at = kpti_perfetto_annotate(at, annotation, ANNOTATION_BOOL, 1);
    kpti_perfetto_close(w, &event, at);
}

/* A span that continues after its frame is also written on a track of its own. A span that was never ended and
 * closes with the end of the recording is complete. */
void kpti_perfetto_end_frame(kpti_perfetto *w, kpti_perfetto_track *t, uint32_t begin, int64_t ns,
                             const kpt_activity *call)
{
    int stops = !kpti_spans_has_end(&w->spans, begin) &&
                (!call || call->flags & KPT_ACTIVITY_ENDED_BY_STOP);
    put_frame_end(w, t, ns, stops ? KPTI_ANNOTATION_ENDED_BY_STOP : KPTI_ANNOTATION_CLAMPED);
    if (stops) kpti_spans_written(&w->spans, begin);
}

static void end_frames(kpti_perfetto *w, kpti_perfetto_track *t, const kpt_activity *point,
                       uint32_t begin)
{
    while (kpti_spans_pop(&w->spans, point->thread) != begin)
        put_frame_end(w, t, point->start_ns, KPTI_ANNOTATION_CLAMPED);
    put_frame_end(w, t, point->start_ns, 0);
    kpti_spans_written(&w->spans, begin);
}

kpt_status kpti_perfetto_note(kpti_perfetto *w, const kpt_activity *point, const kpti_note *note)
{
    kpti_perfetto_track *t = kpti_perfetto_track_of(w, point->thread);
    kpt_status status = KPT_OK;
    uint32_t begin;
    int is_frame;
    if (!t) return KPT_E_MEMORY;
    switch (note->what) {
    case KPTI_NOTE_TASK:
        return kpti_perfetto_task_point(w, t, point, note);
    case KPTI_NOTE_BEGIN:
        status = kpti_spans_begin(&w->spans, point, &is_frame);
        if (status == KPT_OK && is_frame) begin_frame(w, t, note, point->start_ns);
        return status;
    case KPTI_NOTE_END:
        begin = kpti_spans_end(&w->spans, point, note);
        if (begin) end_frames(w, t, point, begin);
        return KPT_OK;
    case KPTI_NOTE_MARK:
        put_mark(w, t, note, point->start_ns);
        break;
    case KPTI_NOTE_COUNTER:
        status = put_counter(w, t, note, point->start_ns);
        break;
    default:
        break;
    }
    kpti_spans_came(&w->spans, point);
    return status;
}

/* --- the remaining notes ------------------------------------------------------------------------ */

static void put_loose(kpti_perfetto *w, const kpti_loose *span)
{
    uint64_t track = kpti_perfetto_make_track(w, span->note->name, 0);
    kpti_perfetto_event event;
    char *at = kpti_perfetto_open(w, &w->own, span->start_ns, EVENT_BEGIN, NOTE_ROOM, &event);
    at = put_fields(w, kpti_proto_number(at, EVENT_TRACK, track), span->note);
    at = kpti_perfetto_annotate(at, KPTI_ANNOTATION_THREAD, ANNOTATION_UINT, span->start_tid);
    if (span->began_before)
        at = kpti_perfetto_annotate(at, KPTI_ANNOTATION_BEGAN_BEFORE, ANNOTATION_BOOL, 1);
    kpti_perfetto_close(w, &event, at);
    at = kpti_perfetto_open(w, &w->own, span->end_ns, EVENT_END, 0, &event);
    at = kpti_proto_number(at, EVENT_TRACK, track);
    if (span->stopped)
        at = kpti_perfetto_annotate(at, KPTI_ANNOTATION_ENDED_BY_STOP, ANNOTATION_BOOL, 1);
    kpti_perfetto_close(w, &event, at);
}

kpt_status kpti_perfetto_rest(kpti_perfetto *w)
{
    kpt_status status = KPT_OK;
    uint32_t number = 0;
    kpti_loose loose;
    for (uint32_t i = 0; w->spans.frames && i < w->spans.track_capacity; i++) {
        uint32_t frame;
        while ((frame = kpti_spans_pop(&w->spans, i)))
            kpti_perfetto_end_frame(w, kpti_perfetto_track_of(w, i), frame, w->base.last_ns, NULL);
    }
    while (status == KPT_OK && kpti_spans_next(&w->spans, &w->base, &number, &loose)) {
        if (loose.note->what == KPTI_NOTE_MARK)
            put_mark(w, &w->own, loose.note, loose.start_ns);
        else if (loose.note->what == KPTI_NOTE_COUNTER)
            status = put_counter(w, &w->own, loose.note, loose.start_ns);
        else
            put_loose(w, &loose);
    }
    return status;
}
