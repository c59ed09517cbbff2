#include "writers/memory/memory_perfetto.h"

#include <stdlib.h>

#include "core/base/u64_map.h"
#include "writers/encode/proto.h"
#include "writers/perfetto/perfetto_wire.h"

/* Most bytes of a packet without its names. */
enum { PACKET_ROOM = 512, MAX_NAME = 4096, SEQUENCE = 1 };

/* Numbers of tracks: the process, then devices, and threads by their id. */
enum { PROCESS_TRACK = 1, FIRST_DEVICE_TRACK = 2 };
#define FIRST_THREAD_TRACK (UINT64_C(1) << 32)

/* Interned names of annotations. */
enum { ADDRESS = 1, BYTES, TOTAL, DEVICE, ANNOTATIONS };
static const char *const annotations[ANNOTATIONS] = {
    [ADDRESS] = "Addr", [BYTES] = "Bytes", [TOTAL] = "Total Allocated", [DEVICE] = "Device"};

typedef struct writing {
    kpti_memory_history *history;
    kpti_out_file *out;
    kpti_u64_map threads; /* threads that have a track */
    kpti_u64_map places;  /* symbols whose source location is interned, with the id symbol + 1 */
} writing;

static char *open_packet(writing *w, int64_t ns, char **packet)
{
    char *at = kpti_out_reserve(w->out, PACKET_ROOM + MAX_NAME * KPTI_UTF8_MAX_GROWTH * 2);
    *packet = kpti_proto_open(at, TRACE_PACKET);
    at = *packet;
    if (ns) {
        at = kpti_proto_number(at, PACKET_TIMESTAMP, (uint64_t)ns);
        at = kpti_proto_number(at, PACKET_CLOCK, UNIX_CLOCK);
    }
    return kpti_proto_number(at, PACKET_SEQUENCE, SEQUENCE);
}

static void close_packet(writing *w, char *packet, char *at)
{
    kpti_out_wrote(w->out, kpti_proto_close(packet, at));
}

static kpt_str text_of(const char *text)
{
    return (kpt_str){text, strlen(text)};
}

static void put_process(writing *w)
{
    char *packet;
    char *at = open_packet(w, 0, &packet);
    char *track;
    char *process;
    at = kpti_proto_number(at, PACKET_FLAGS, PACKET_STATE_CLEARED);
    track = kpti_proto_open(at, PACKET_TRACK);
    at = kpti_proto_number(track, TRACK_UUID, PROCESS_TRACK);
    process = kpti_proto_open(at, TRACK_PROCESS);
    at = kpti_proto_number(process, PROCESS_PID, w->history->pid);
    at = kpti_proto_close(process, kpti_proto_text(at, PROCESS_NAME, text_of("memory"), MAX_NAME));
    close_packet(w, packet, kpti_proto_close(track, at));
}

static void put_device(writing *w, uint32_t device)
{
    char *packet;
    char *at = open_packet(w, 0, &packet);
    char *track = kpti_proto_open(at, PACKET_TRACK);
    char *counter;
    at = kpti_proto_number(track, TRACK_UUID, FIRST_DEVICE_TRACK + device);
    at = kpti_proto_number(at, TRACK_PARENT, PROCESS_TRACK);
    at = kpti_proto_text(at, TRACK_NAME, text_of(w->history->names.devices[device].name), MAX_NAME);
    counter = kpti_proto_open(at, TRACK_COUNTER);
    at = kpti_proto_close(counter, kpti_proto_number(counter, COUNTER_UNIT, UNIT_BYTES));
    close_packet(w, packet, kpti_proto_close(track, at));
}

static int put_thread(writing *w, uint64_t os_tid)
{
    uint32_t *known = kpti_u64_map_at(&w->threads, os_tid);
    char *packet;
    char *at;
    char *track;
    char *thread;
    if (!known || *known) return known != NULL;
    *known = 1;
    at = open_packet(w, 0, &packet);
    track = kpti_proto_open(at, PACKET_TRACK);
    at = kpti_proto_number(track, TRACK_UUID, FIRST_THREAD_TRACK + os_tid);
    at = kpti_proto_number(at, TRACK_PARENT, PROCESS_TRACK);
    thread = kpti_proto_open(at, TRACK_THREAD);
    at = kpti_proto_number(thread, THREAD_PID, w->history->pid);
    at = kpti_proto_close(thread, kpti_proto_number(at, THREAD_TID, os_tid));
    close_packet(w, packet, kpti_proto_close(track, at));
    return 1;
}

static char *put_interned(char *at, uint32_t kind, uint64_t id, kpt_str text)
{
    char *entry = kpti_proto_open(at, kind);
    at = kpti_proto_number(entry, INTERN_ID, id);
    return kpti_proto_close(entry, kpti_proto_text(at, INTERN_TEXT, text, MAX_NAME));
}

static void put_annotations(writing *w)
{
    char *packet;
    char *at = open_packet(w, 0, &packet);
    char *interned = kpti_proto_open(at, PACKET_INTERNED);
    at = put_interned(interned, INTERNED_NAME, 1, text_of("[memory]"));
    for (uint32_t i = ADDRESS; i < ANNOTATIONS; i++)
        at = put_interned(at, INTERNED_ANNOTATION, i, text_of(annotations[i]));
    close_packet(w, packet, kpti_proto_close(interned, at));
}

/* Returns the id of the source location of STACK's innermost frame, or 0 if there is none or no memory for it. */
static uint64_t place_of(writing *w, uint32_t stack)
{
    const kpti_memory_names *names = &w->history->names;
    const kpti_memory_symbol *s;
    uint32_t symbol;
    uint32_t *known;
    char *packet;
    char *at;
    char *interned;
    char *source;
    if (!stack) return 0;
    symbol = kpti_memory_node_at(names, stack)->symbol;
    known = kpti_u64_map_at(&w->places, symbol);
    if (!known || *known) return known ? symbol + UINT64_C(1) : 0;
    *known = 1;
    s = &names->symbols[symbol];
    at = open_packet(w, 0, &packet);
    interned = kpti_proto_open(at, PACKET_INTERNED);
    source = kpti_proto_open(interned, INTERNED_SOURCE);
    at = kpti_proto_number(source, INTERN_ID, symbol + UINT64_C(1));
    at = kpti_proto_text(at, SOURCE_FILE, s->file, MAX_NAME);
    at = kpti_proto_text(at, SOURCE_FUNCTION, s->name, MAX_NAME);
    at = kpti_proto_close(source, kpti_proto_number(at, SOURCE_LINE, s->line));
    close_packet(w, packet, kpti_proto_close(interned, at));
    return symbol + UINT64_C(1);
}

static char *annotate(char *at, uint32_t name, uint32_t kind, uint64_t value)
{
    char *content = kpti_proto_open(at, EVENT_ANNOTATION);
    at = kpti_proto_number(content, ANNOTATION_NAME_ID, name);
    return kpti_proto_close(content, kpti_proto_number(at, kind, value));
}

static char *annotate_text(char *at, uint32_t name, kpt_str text)
{
    char *content = kpti_proto_open(at, EVENT_ANNOTATION);
    at = kpti_proto_number(content, ANNOTATION_NAME_ID, name);
    return kpti_proto_close(content, kpti_proto_text(at, ANNOTATION_TEXT, text, MAX_NAME));
}

static void put_instant(writing *w, const kpti_memory_entry *e, uint64_t total)
{
    const uint64_t place = place_of(w, e->stack);
    const int64_t bytes = e->kind & KPTI_MEMORY_FREE ? -(int64_t)e->size : (int64_t)e->size;
    char *packet;
    char *at = open_packet(w, e->time_ns, &packet);
    char *event = kpti_proto_open(at, PACKET_TRACK_EVENT);
    at = kpti_proto_number(event, EVENT_TYPE, EVENT_INSTANT);
    at = kpti_proto_number(at, EVENT_TRACK, FIRST_THREAD_TRACK + e->os_tid);
    at = kpti_proto_number(at, EVENT_NAME_ID, 1);
    if (place) at = kpti_proto_number(at, EVENT_SOURCE_ID, place);
    at = annotate(at, ADDRESS, ANNOTATION_UINT, e->address);
    at = annotate(at, BYTES, ANNOTATION_INT, (uint64_t)bytes);
    at = annotate(at, TOTAL, ANNOTATION_UINT, total);
    at = annotate_text(at, DEVICE, text_of(w->history->names.devices[e->device].name));
    close_packet(w, packet, kpti_proto_close(event, at));
}

static void put_counter(writing *w, const kpti_memory_entry *e, uint64_t bytes)
{
    char *packet;
    char *at = open_packet(w, e->time_ns, &packet);
    char *event = kpti_proto_open(at, PACKET_TRACK_EVENT);
    at = kpti_proto_number(event, EVENT_TYPE, EVENT_COUNTER);
    at = kpti_proto_number(at, EVENT_TRACK, FIRST_DEVICE_TRACK + e->device);
    at = kpti_proto_number(at, EVENT_COUNTER_VALUE, bytes);
    close_packet(w, packet, kpti_proto_close(event, at));
}

static int put_all(writing *w, kpti_memory_curves *curves)
{
    kpti_memory_history *h = w->history;
    kpti_memory_entry e;
    put_process(w);
    for (uint32_t i = 0; i < h->names.device_count; i++)
        put_device(w, i);
    put_annotations(w);
    kpti_memory_history_first(h);
    while (kpti_memory_history_next(h, &e)) {
        if (!put_thread(w, e.os_tid)) return 0;
        kpti_memory_curves_take(curves, h, &e);
        put_instant(w, &e, curves->of_space[e.space]);
        put_counter(w, &e, curves->of_device[e.device]);
    }
    return !h->failed;
}

int kpti_memory_perfetto_write(kpti_memory_history *history, kpti_out_file *out)
{
    writing w = {.history = history, .out = out};
    kpti_memory_curves curves;
    int whole = kpti_memory_curves_make(&curves, history);
    if (!whole) return 0;
    whole = put_all(&w, &curves);
    kpti_memory_curves_free(&curves);
    kpti_u64_map_free(&w.threads);
    kpti_u64_map_free(&w.places);
    return whole;
}
