/* perfetto_packets.h: packets and events of a Perfetto trace. Only the Perfetto writer uses this. */
#ifndef KPTI_WRITERS_PERFETTO_PERFETTO_PACKETS_H
#define KPTI_WRITERS_PERFETTO_PERFETTO_PACKETS_H

#include "writers/perfetto/perfetto_state.h"

/* Writes a time as the difference to the previous packet's time. A time that decreases is written as Unix time. */
static inline char *kpti_perfetto_put_time(kpti_perfetto_track *t, char *at, int64_t ns)
{
    if (ns >= t->last_ns) {
        at = kpti_proto_number(at, PACKET_TIMESTAMP, (uint64_t)ns - (uint64_t)t->last_ns);
        t->last_ns = ns;
        return at;
    }
    at = kpti_proto_number(at, PACKET_TIMESTAMP, ns < 0 ? 0 : (uint64_t)ns);
    return kpti_proto_number(at, PACKET_CLOCK, UNIX_CLOCK);
}

static inline char *kpti_perfetto_put_head(const kpti_perfetto_track *t, char *at)
{
    memcpy(at, t->end, 8); /* the number takes at most six */
    return at + t->head_bytes;
}

/* The hot path: a packet whose length fits in one byte. BEGIN is reserved, and its fields begin at BEGIN + 2. */
enum { KPTI_PERFETTO_SHORT_PACKET = 128 };
static inline void kpti_perfetto_end_short(kpti_perfetto *w, char *begin, char *end)
{
    begin[0] = TRACE_PACKET << 3 | KPTI_WIRE_BYTES;
    begin[1] = (char)(end - begin - 2);
    kpti_out_wrote(&w->base.out, end);
}

/* An event that is being written. */
typedef struct kpti_perfetto_event {
    char *packet;
    char *event;
} kpti_perfetto_event;

/* Begins an event of TYPE with space for CAPACITY bytes. Returns the position of its further fields. */
char *kpti_perfetto_open(kpti_perfetto *writer, kpti_perfetto_track *track_state, int64_t ns,
                         uint32_t type, size_t capacity, kpti_perfetto_event *event);
void kpti_perfetto_close(kpti_perfetto *writer, const kpti_perfetto_event *event, char *end);

char *kpti_perfetto_annotate(char *at, uint32_t annotation, uint32_t kind, uint64_t value);

/* Writes a packet that interns TEXT as NUMBER of FIELD (INTERNED_*) in a sequence. */
void kpti_perfetto_intern(kpti_perfetto *writer, const kpti_perfetto_track *track_state,
                          uint32_t field, uint64_t number, kpt_str text);

#endif
