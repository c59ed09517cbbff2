#include "writers/perfetto/perfetto_tracks.h"

#include "core/base/hash.h"

enum { OWN_SEQUENCE = 1, FIRST_THREAD_SEQUENCE = 2 };
/* Tracks are numbered from the writer's uuids: the process, its threads, then made tracks. */
enum { PROCESS_TRACK = 1, FIRST_THREAD_TRACK = 2 };
#define FIRST_MADE_TRACK   (UINT64_C(1) << 32)
#define UUIDS_OF_A_PROCESS (FIRST_MADE_TRACK * 4)
/* With a label, two texts share the space of one. */
enum { MAX_PROCESS_NAME = KPTI_PERFETTO_MAX_NAME / 2 };

/* Names of annotations, by number. */
static const char *const annotations[] = {
    "",     "began before", "ended by stop", "clamped",       "recovered",
    "line", "generation",   "collected",     "uncollectable", "thread"};
enum { ANNOTATIONS = sizeof annotations / sizeof annotations[0] };

char *kpti_perfetto_open_packet(kpti_perfetto *w, const kpti_perfetto_track *t, char **packet)
{
    enum { CAPACITY = KPTI_PERFETTO_MAX_NAME * KPTI_UTF8_MAX_GROWTH + KPTI_PERFETTO_MAX_REST };
    *packet = kpti_proto_open(kpti_out_reserve(&w->base.out, CAPACITY), TRACE_PACKET);
    memcpy(*packet, t->end, t->head_bytes);
    return *packet + t->head_bytes;
}

static void close_packet(kpti_perfetto *w, char *packet, char *end)
{
    kpti_out_wrote(&w->base.out, kpti_proto_close(packet, end));
}

/* Times before 1970 cannot be written. */
static int64_t base_of(const kpti_perfetto *w)
{
    return w->base.base_ns < 0 ? 0 : w->base.base_ns;
}

/* --- sequences -------------------------------------------------------------------------------- */

static char *put_defaults(char *at, uint64_t track, uint32_t clock)
{
    char *defaults = kpti_proto_open(at, PACKET_DEFAULTS);
    char *event;
    at = kpti_proto_number(defaults, DEFAULTS_CLOCK, clock);
    event = kpti_proto_open(at, DEFAULTS_TRACK_EVENT);
    at = kpti_proto_close(event, kpti_proto_number(event, DEFAULTS_TRACK, track));
    return kpti_proto_close(defaults, at);
}

static char *put_annotation_names(char *at)
{
    char *interned = kpti_proto_open(at, PACKET_INTERNED);
    at = interned;
    for (uint32_t i = 1; i < ANNOTATIONS; i++) {
        char *entry = kpti_proto_open(at, INTERNED_ANNOTATION);
        at = kpti_proto_number(entry, INTERN_ID, i);
        at = kpti_proto_text(at, INTERN_TEXT, kpt_str_of(annotations[i]), SIZE_MAX);
        at = kpti_proto_close(entry, at);
    }
    return kpti_proto_close(interned, at);
}

static char *put_clock(char *at, uint32_t clock, uint64_t ns)
{
    char *content = kpti_proto_open(at, SNAPSHOT_CLOCK);
    at = kpti_proto_number(content, CLOCK_ID, clock);
    at = kpti_proto_number(at, CLOCK_TIME, ns);
    if (clock == DELTA_CLOCK) at = kpti_proto_number(at, CLOCK_IS_INCREMENTAL, 1);
    return kpti_proto_close(content, at);
}

/* Times of the trace are Unix times. The clocks of all sequences begin at the same time. */
static void put_snapshot(kpti_perfetto *w, const kpti_perfetto_track *t)
{
    char *packet;
    char *snapshot =
        kpti_proto_open(kpti_perfetto_open_packet(w, t, &packet), PACKET_CLOCK_SNAPSHOT);
    char *at = put_clock(snapshot, UNIX_CLOCK, (uint64_t)base_of(w));
    at = put_clock(at, DELTA_CLOCK, (uint64_t)base_of(w));
    at = kpti_proto_number(at, SNAPSHOT_PRIMARY, UNIX_CLOCK);
    close_packet(w, packet, kpti_proto_close(snapshot, at));
}

static void begin_sequence(kpti_perfetto *w, const kpti_perfetto_track *t, uint64_t track,
                           uint32_t clock)
{
    char *packet;
    char *at = kpti_perfetto_open_packet(w, t, &packet);
    at = kpti_proto_number(at, PACKET_FLAGS, PACKET_STATE_CLEARED);
    at = kpti_proto_number(at, PACKET_FIRST, 1);
    at = put_annotation_names(put_defaults(at, track, clock));
    close_packet(w, packet, at);
    put_snapshot(w, t);
}

static void number_track(kpti_perfetto_track *t, uint64_t sequence)
{
    char *at = kpti_proto_number(t->end, PACKET_SEQUENCE, sequence);
    t->head_bytes = (uint8_t)(at - t->end);
    at = kpti_proto_tag(at, PACKET_TRACK_EVENT, KPTI_WIRE_BYTES);
    *at++ = 2;
    at = kpti_proto_number(at, EVENT_TYPE, EVENT_END);
    t->end_bytes = (uint8_t)(at - t->end);
}

/* --- tracks ----------------------------------------------------------------------------------- */

static char *put_process(const kpti_perfetto *w, char *at, const kpti_writer_options *options)
{
    char *process = kpti_proto_open(at, TRACK_PROCESS);
    at = kpti_proto_number(process, PROCESS_PID, w->base.pid);
    at = kpti_proto_text(at, PROCESS_NAME,
                         options->process_name.size ? options->process_name : kpt_str_of("python"),
                         MAX_PROCESS_NAME);
    if (options->process_label.size)
        at = kpti_proto_text(at, PROCESS_LABELS, options->process_label, MAX_PROCESS_NAME);
    return kpti_proto_close(process, at);
}

/* Uuids differ between files, since traces may be merged. */
static uint64_t first_uuid(const kpti_perfetto *w)
{
    uint64_t mixed = kpti_hash_spread((uint64_t)w->base.base_ns + w->base.pid);
    if (w->base.processes) return w->uuids + UUIDS_OF_A_PROCESS;
    return mixed & ~(UUIDS_OF_A_PROCESS - 1);
}

void kpti_perfetto_begin_process(kpti_perfetto *w, const kpti_writer_options *options)
{
    char *packet;
    char *track;
    char *at;
    w->uuids = first_uuid(w);
    number_track(&w->own, w->sequences + OWN_SEQUENCE);
    w->own.last_ns = INT64_MAX;
    begin_sequence(w, &w->own, w->uuids + PROCESS_TRACK, UNIX_CLOCK);
    track = kpti_proto_open(kpti_perfetto_open_packet(w, &w->own, &packet), PACKET_TRACK);
    at = kpti_proto_number(track, TRACK_UUID, w->uuids + PROCESS_TRACK);
    at = put_process(w, at, options);
    close_packet(w, packet, kpti_proto_close(track, at));
}

static char *put_thread(const kpti_perfetto *w, char *at, const kpt_thread *thread)
{
    char *content = kpti_proto_open(at, TRACK_THREAD);
    at = kpti_proto_number(content, THREAD_PID, w->base.pid);
    at = kpti_proto_number(at, THREAD_TID, thread->os_tid);
    at = kpti_proto_text(at, THREAD_NAME, thread->name, KPTI_PERFETTO_MAX_NAME);
    return kpti_proto_close(content, at);
}

uint64_t kpti_perfetto_thread_track(const kpti_perfetto *w, uint32_t thread)
{
    return w->uuids + FIRST_THREAD_TRACK + thread;
}

/* Sets *OUT to the sequence of THREAD, which may not have begun. */
static kpt_status reach_track(kpti_perfetto *w, uint32_t thread, kpti_perfetto_track **out)
{
    const uint32_t block = thread / KPTI_PERFETTO_BLOCK;
    kpt_status status = KPT_E_LIMIT;
    if (thread < KPTI_MAX_ITEMS)
        status = kpti_array_reach(&w->base.heap, &w->track_blocks, &w->block_capacity, block,
                                  sizeof *w->track_blocks);
    if (status != KPT_OK) return status;
    if (!w->track_blocks[block])
        w->track_blocks[block] =
            kpti_heap_take_zeroed(&w->base.heap, KPTI_PERFETTO_BLOCK * sizeof **out);
    if (!w->track_blocks[block]) return KPT_E_MEMORY;
    *out = &w->track_blocks[block][thread % KPTI_PERFETTO_BLOCK];
    return KPT_OK;
}

/* Remembers the thread for the GPU's activity. If several threads had the same id, it is the last one. */
static kpt_status note_thread(kpti_perfetto *w, const kpt_thread *thread)
{
    uint32_t *known;
    if (!w->base.gpu->events) return KPT_OK;
    known = kpti_u64_map_at(&w->threads, kpti_perfetto_thread_key(thread->os_tid));
    if (!known) return KPT_E_MEMORY;
    *known = thread->index + 1;
    return KPT_OK;
}

kpt_status kpti_perfetto_begin_thread(kpti_perfetto *w, const kpt_thread *thread)
{
    uint64_t uuid = kpti_perfetto_thread_track(w, thread->index);
    kpti_perfetto_track *t;
    kpt_status status = reach_track(w, thread->index, &t);
    char *packet;
    char *track;
    char *at;
    if (status == KPT_OK) status = note_thread(w, thread);
    if (status != KPT_OK) return status;
    if (thread->index >= w->next_thread) w->next_thread = thread->index + 1;
    if (!t->end_bytes) {
        number_track(t, w->sequences + FIRST_THREAD_SEQUENCE + thread->index);
        t->last_ns = base_of(w);
        begin_sequence(w, t, uuid, DELTA_CLOCK);
    }
    track = kpti_proto_open(kpti_perfetto_open_packet(w, t, &packet), PACKET_TRACK);
    at = kpti_proto_number(track, TRACK_UUID, uuid);
    at = kpti_proto_number(at, TRACK_PARENT, w->uuids + PROCESS_TRACK);
    close_packet(w, packet, kpti_proto_close(track, put_thread(w, at, thread)));
    return KPT_OK;
}

kpti_perfetto_track *kpti_perfetto_unknown_thread(kpti_perfetto *w, uint32_t thread)
{
    const kpt_thread unknown = {.index = thread,
                                .os_tid = kpti_made_up_tid(thread),
                                .name = {"unknown", sizeof "unknown" - 1}};
    return kpti_perfetto_begin_thread(w, &unknown) == KPT_OK ? kpti_perfetto_track_of(w, thread)
                                                             : NULL;
}

uint64_t kpti_perfetto_made_track(const kpti_perfetto *w, uint64_t number)
{
    return w->uuids + FIRST_MADE_TRACK + number;
}

static uint64_t make_track(kpti_perfetto *w, uint64_t parent, kpt_str name, int is_counter)
{
    uint64_t uuid = kpti_perfetto_made_track(w, w->made_tracks++);
    char *packet;
    char *track = kpti_proto_open(kpti_perfetto_open_packet(w, &w->own, &packet), PACKET_TRACK);
    char *at = kpti_proto_number(track, TRACK_UUID, uuid);
    if (parent) at = kpti_proto_number(at, TRACK_PARENT, parent);
    at = kpti_proto_text(at, TRACK_NAME, name, KPTI_PERFETTO_MAX_NAME);
    if (is_counter) {
        char *counter = kpti_proto_open(at, TRACK_COUNTER);
        at = kpti_proto_close(counter, counter);
    }
    close_packet(w, packet, kpti_proto_close(track, at));
    return uuid;
}

uint64_t kpti_perfetto_make_track(kpti_perfetto *w, kpt_str name, int is_counter)
{
    return make_track(w, w->uuids + PROCESS_TRACK, name, is_counter);
}

uint64_t kpti_perfetto_make_track_in(kpti_perfetto *w, uint64_t parent, kpt_str name)
{
    return make_track(w, parent, name, 0);
}
