#include "imports/chrome_import.h"

#include <string.h>

#include "abi/kpt_text.h"
#include "imports/import_chunks.h"
#include "imports/import_notes.h"
#include "imports/trace_event.h"
#include "writers/encode/json_scan.h"

/* An item that is longer is taken for damage. */
enum { MAX_ITEM_BYTES = 64 << 20, MAX_KEY = 64, NS_IN_S = 1000000000 };

/* Times of recordings are below it, in the year 2043. */
static const int64_t most_unix_ns = INT64_MAX / 4;

typedef enum place {
    AT_BEGIN,
    AT_FIRST_MEMBER, /* after the brace that opens the file */
    AT_MEMBER,       /* after a comma */
    AFTER_MEMBER,
    AT_EVENT,
    AFTER_EVENT,
    AT_END
} place;

struct kpti_chrome_import {
    place at;
    int is_list; /* the file is a list of events, without an object around it */
    int is_damaged;
    char *rest; /* the beginning of an item whose end was not fed yet */
    uint64_t rest_capacity;
    uint64_t rest_size;
    kpti_chrome_import_result result;
    kpti_import_tracks tracks;
    kpti_import_names names;
    kpti_notes notes;
    int64_t base_ns;
    kpt_status status;
    /* the process and the thread of the last event, as they are in the text */
    char pid[MAX_KEY];
    char tid[MAX_KEY];
    size_t pid_size;
    size_t tid_size;
    uint32_t track; /* its index + 1; 0: there is none */
};

/* --- events ----------------------------------------------------------------------------------- */

static int is_last(const kpti_chrome_import *in, kpt_str pid, kpt_str tid)
{
    return in->track && pid.size == in->pid_size && tid.size == in->tid_size &&
           memcmp(pid.data, in->pid, in->pid_size) == 0 &&
           memcmp(tid.data, in->tid, in->tid_size) == 0;
}

static void remember(kpti_chrome_import *in, kpt_str pid, kpt_str tid)
{
    in->track = 0;
    if (!pid.size || !tid.size || pid.size > MAX_KEY || tid.size > MAX_KEY) return;
    memcpy(in->pid, pid.data, (size_t)pid.size);
    memcpy(in->tid, tid.data, (size_t)tid.size);
    in->pid_size = (size_t)pid.size;
    in->tid_size = (size_t)tid.size;
}

/* Returns the track, or NULL and sets the status. */
static kpti_import_track *track_of(kpti_chrome_import *in, kpt_str pid, kpt_str tid)
{
    kpti_import_track *track;
    if (is_last(in, pid, tid)) return &in->tracks.items[in->track - 1];
    track = kpti_import_track_at(&in->tracks, pid, tid);
    if (track && !track->pid.data) {
        track->pid = kpti_import_text(&in->names.texts, pid);
        track->tid = kpti_import_text(&in->names.texts, tid);
    }
    if (!track || !track->pid.data || !track->tid.data) {
        in->status = KPT_E_MEMORY;
        return NULL;
    }
    remember(in, pid, tid);
    if (in->pid_size == pid.size && in->tid_size == tid.size && pid.size && tid.size)
        in->track = (uint32_t)(track - in->tracks.items) + 1;
    return track;
}

static void keep(kpti_chrome_import *in, int done)
{
    if (!done) in->status = KPT_E_MEMORY;
}

static void take_call(kpti_chrome_import *in, const kpti_trace_event *e)
{
    kpti_import_track *track = track_of(in, e->pid, e->tid);
    uint32_t name = 0;
    if (!track) return;
    if (e->phase == 'E') {
        if (kpti_import_end_call(&in->tracks, track, e->start_ns)) return;
        in->result.skipped++;
        return;
    }
    name = kpti_import_names_at(&in->names, e->name, e->category, e->args);
    if (!name) {
        in->status = KPT_E_MEMORY;
        return;
    }
    in->result.calls++;
    if (e->phase == 'B')
        keep(in, kpti_import_begin_call(&in->tracks, track, e->start_ns, name));
    else
        keep(in, kpti_import_add_call(&in->tracks, track, e->start_ns, e->duration_ns, name));
}

static void take_notes(kpti_chrome_import *in, const kpti_trace_event *e)
{
    kpti_import_track *track = track_of(in, e->pid, e->tid);
    uint32_t count = 0;
    if (!track) return;
    for (uint32_t number;
         (number = kpti_import_note(&in->notes, &in->names.texts, e, in->base_ns, count)) != 0;
         count++)
        keep(in, kpti_import_add_point(&in->tracks, track, e->start_ns, number));
    in->result.notes += count;
    in->result.skipped += !count;
}

static void take_metadata(kpti_chrome_import *in, const kpti_trace_event *e)
{
    static const kpt_str no_thread = {"", 0};
    const int is_process = kpt_str_is(e->name, "process_name");
    const kpt_str value = kpti_trace_member(e->args, "name");
    kpti_import_track *track;
    if ((!is_process && !kpt_str_is(e->name, "thread_name")) || value.size < 2 ||
        value.data[0] != '"')
        return;
    track = track_of(in, e->pid, is_process ? no_thread : e->tid);
    if (!track) return;
    track->name = kpti_import_text(&in->names.texts, (kpt_str){value.data + 1, value.size - 2});
    keep(in, track->name.data != NULL);
}

/* Kineto has its own rows beside those of processes. */
static int is_of_kineto(const kpti_trace_event *e)
{
    return kpt_str_is(e->pid, "Spans") || kpt_str_is(e->pid, "Traces");
}

static void take_event(kpti_chrome_import *in, const kpti_trace_event *e)
{
    in->result.events++;
    if (e->phase == 'M') {
        take_metadata(in, e);
        return;
    }
    if (is_of_kineto(e)) return;
    if (e->has_start && e->phase && strchr("XBE", e->phase))
        take_call(in, e);
    else if (e->has_start && e->phase && strchr("iIC", e->phase))
        take_notes(in, e);
    else
        in->result.skipped++;
}

/* --- the file --------------------------------------------------------------------------------- */

/* Each reads an item at AT and returns its end, or NULL if it is not complete. */
static const char *read_begin(kpti_chrome_import *in, const char *at, const char *end)
{
    const char *next = kpti_json_skip_sign(at, end, '[');
    if (next) {
        in->is_list = in->result.is_trace = 1;
        in->at = AT_EVENT;
        return next;
    }
    next = kpti_json_skip_sign(at, end, '{');
    if (next) in->at = AT_FIRST_MEMBER;
    return next;
}

/* Returns where the list of events begins, if the member at AT is that. */
static const char *read_list(kpti_chrome_import *in, const char *at, const char *end)
{
    const char *const key = kpti_json_skip_space(at, end);
    const char *const key_end = kpti_json_skip_string(key, end);
    const char *value = key_end ? kpti_json_skip_sign(key_end, end, ':') : NULL;
    if (!value || !kpti_json_is(key, key_end, "traceEvents")) return NULL;
    value = kpti_json_skip_sign(value, end, '[');
    if (!value) return NULL;
    in->result.is_trace = 1;
    in->at = AT_EVENT;
    return value;
}

static const char *read_member(kpti_chrome_import *in, const char *at, const char *end)
{
    kpti_json_member member;
    const char *next = in->at == AT_FIRST_MEMBER ? kpti_json_skip_sign(at, end, '}') : NULL;
    if (next) {
        in->at = AT_END;
        return next;
    }
    next = read_list(in, at, end);
    if (next) return next;
    next = kpti_json_skip_member(at, end, &member);
    if (!next || next == end) return NULL; /* a number may go on */
    if (kpti_json_is(member.key, member.key_end, "baseTimeNanoseconds") &&
        (!kpti_json_whole(member.value, member.value_end, &in->base_ns) ||
         in->base_ns >= most_unix_ns))
        in->base_ns = 0;
    in->at = AFTER_MEMBER;
    return next;
}

static const char *read_after(kpti_chrome_import *in, const char *at, const char *end, char close,
                              place again, place after)
{
    const char *const comma = kpti_json_skip_sign(at, end, ',');
    const char *const next = comma ? comma : kpti_json_skip_sign(at, end, close);
    if (next) in->at = comma ? again : after;
    return next;
}

static const char *read_event(kpti_chrome_import *in, const char *at, const char *end)
{
    kpti_trace_event event;
    /* An empty list; also a comma behind the last event, which some tools write. */
    const char *next = kpti_json_skip_sign(at, end, ']');
    if (next) {
        in->at = in->is_list ? AT_END : AFTER_MEMBER;
        return next;
    }
    next = kpti_trace_event_read(at, end, &event);
    if (!next) return NULL;
    take_event(in, &event);
    in->at = AFTER_EVENT;
    return next;
}

static const char *read_item(kpti_chrome_import *in, const char *at, const char *end)
{
    switch (in->at) {
    case AT_BEGIN:
        return read_begin(in, at, end);
    case AT_FIRST_MEMBER:
    case AT_MEMBER:
        return read_member(in, at, end);
    case AFTER_MEMBER:
        return read_after(in, at, end, '}', AT_MEMBER, AT_END);
    case AT_EVENT:
        return read_event(in, at, end);
    case AFTER_EVENT:
        return read_after(in, at, end, ']', AT_EVENT, in->is_list ? AT_END : AFTER_MEMBER);
    default:
        return NULL;
    }
}

/* Reads as many items as are complete. Returns the end of the last. */
static const char *read_items(kpti_chrome_import *in, const char *at, const char *end)
{
    while (in->status == KPT_OK && in->at != AT_END) {
        const char *next = read_item(in, at, end);
        if (!next) break;
        at = next;
    }
    return at;
}

static int keep_rest(kpti_chrome_import *in, const char *bytes, uint64_t size)
{
    if (!kpti_array_reserve(&kpti_malloc_heap, &in->rest, &in->rest_capacity, in->rest_size + size,
                            1))
        return 0;
    if (size) memcpy(in->rest + in->rest_size, bytes, (size_t)size);
    in->rest_size += size;
    return 1;
}

kpt_status kpti_chrome_import_feed(kpti_chrome_import *in, const char *bytes, uint64_t size)
{
    const char *at;
    if (in->status != KPT_OK) return in->status;
    if (in->is_damaged || in->at == AT_END) return KPT_DECLINED;
    if (in->rest_size) {
        if (!keep_rest(in, bytes, size)) return in->status = KPT_E_MEMORY;
        at = read_items(in, in->rest, in->rest + in->rest_size);
        in->rest_size -= (uint64_t)(at - in->rest);
        in->result.bytes += (uint64_t)(at - in->rest);
        memmove(in->rest, at, (size_t)in->rest_size);
    } else {
        at = read_items(in, bytes, bytes + size);
        in->result.bytes += (uint64_t)(at - bytes);
        if (!keep_rest(in, at, size - (uint64_t)(at - bytes))) return in->status = KPT_E_MEMORY;
    }
    in->is_damaged = in->rest_size > MAX_ITEM_BYTES;
    return in->status;
}

kpti_chrome_import *kpti_chrome_import_open(void)
{
    return calloc(1, sizeof(kpti_chrome_import));
}

void kpti_chrome_import_end(kpti_chrome_import *in, kpti_chrome_import_result *out)
{
    in->result.is_whole = in->at == AT_END;
    *out = in->result;
}

/* --- the result ------------------------------------------------------------------------------- */

static void name_processes(kpti_chrome_import *in)
{
    static const kpt_str no_thread = {"", 0};
    for (uint32_t i = 0; i < in->tracks.count; i++) {
        const kpt_str pid = in->tracks.items[i].pid;
        const uint32_t *number =
            kpti_u64_map_at(&in->tracks.numbers, kpti_import_track_key(pid, no_thread));
        if (number && *number) in->tracks.items[i].process = in->tracks.items[*number - 1].name;
    }
}

static uint64_t first_pid(const kpti_import_tracks *tracks)
{
    for (uint32_t i = 0; i < tracks->count; i++) {
        int64_t pid;
        const kpt_str text = tracks->items[i].pid;
        if (tracks->items[i].count && kpti_json_whole(text.data, text.data + text.size, &pid))
            return (uint64_t)pid;
    }
    return 0;
}

/* Whether all times fit into a recording. Where those since 1970 would not, the trace begins in 1970. */
static int settle_times(kpti_chrome_import *in)
{
    const int64_t span_ns = in->tracks.last_ns - in->tracks.first_ns;
    const int64_t room_ns = most_unix_ns - span_ns - 2 * (int64_t)NS_IN_S;
    if (room_ns < 0) return 0;
    if (in->base_ns + in->tracks.first_ns < 2 || in->base_ns + in->tracks.first_ns > room_ns)
        in->base_ns = 2 - in->tracks.first_ns;
    return 1;
}

static kpt_status nest_all(kpti_import_tracks *tracks)
{
    for (uint32_t i = 0; i < tracks->count; i++)
        if (!kpti_import_nest(tracks, &tracks->items[i])) return KPT_E_MEMORY;
    return KPT_OK;
}

kpt_status kpti_chrome_import_write(kpti_chrome_import *in, const char *path, kpt_str info,
                                    int *os_error)
{
    kpti_import_recording recording = {&in->names, &in->tracks, 0};
    int64_t begin_ns;
    kpti_kpt_writer *writer;
    kpt_status status = in->status == KPT_OK ? nest_all(&in->tracks) : in->status;
    *os_error = 0;
    if (status == KPT_OK && !settle_times(in)) status = KPT_E_LIMIT;
    recording.base_ns = in->base_ns;
    begin_ns = in->base_ns + in->tracks.first_ns;
    name_processes(in);
    if (status != KPT_OK) return status;
    writer = calloc(1, sizeof *writer);
    if (!writer) return KPT_E_MEMORY;
    *os_error = kpti_kpt_create(writer, path, 0, first_pid(&in->tracks),
                                begin_ns - begin_ns % NS_IN_S, info);
    if (*os_error) {
        free(writer);
        return KPT_E_IO;
    }
    (void)kpti_kpt_pack(writer);
    status = kpti_import_put(&recording, writer);
    kpti_kpt_put_notes(writer, &in->notes);
    *os_error = kpti_kpt_close(writer, status == KPT_OK);
    free(writer);
    return status == KPT_OK && *os_error ? KPT_E_IO : status;
}

void kpti_chrome_import_free(kpti_chrome_import *in)
{
    if (!in) return;
    kpti_import_tracks_free(&in->tracks);
    kpti_import_names_free(&in->names);
    kpti_notes_free(&in->notes);
    kpti_heap_give(&kpti_malloc_heap, in->rest, (size_t)in->rest_capacity);
    free(in);
}
