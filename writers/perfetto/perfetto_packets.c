#include "writers/perfetto/perfetto_packets.h"

#include "writers/perfetto/perfetto_tracks.h"

char *kpti_perfetto_open(kpti_perfetto *w, kpti_perfetto_track *t, int64_t ns, uint32_t type,
                         size_t capacity, kpti_perfetto_event *event)
{
    char *at = kpti_out_reserve(&w->base.out, capacity + KPTI_PERFETTO_MAX_REST);
    event->packet = kpti_proto_open(at, TRACE_PACKET);
    at = kpti_perfetto_put_head(t, kpti_perfetto_put_time(t, event->packet, ns));
    event->event = kpti_proto_open(at, PACKET_TRACK_EVENT);
    return kpti_proto_number(event->event, EVENT_TYPE, type);
}

void kpti_perfetto_close(kpti_perfetto *w, const kpti_perfetto_event *event, char *end)
{
    end = kpti_proto_close(event->event, end);
    kpti_out_wrote(&w->base.out, kpti_proto_close(event->packet, end));
}

char *kpti_perfetto_annotate(char *at, uint32_t annotation, uint32_t kind, uint64_t value)
{
    char *content = kpti_proto_open(at, EVENT_ANNOTATION);
    at = kpti_proto_number(content, ANNOTATION_NAME_ID, annotation);
    return kpti_proto_close(content, kpti_proto_number(at, kind, value));
}

void kpti_perfetto_intern(kpti_perfetto *w, const kpti_perfetto_track *t, uint32_t field,
                          uint64_t number, kpt_str text)
{
    char *packet;
    char *content = kpti_proto_open(kpti_perfetto_open_packet(w, t, &packet), PACKET_INTERNED);
    char *entry = kpti_proto_open(content, field);
    char *at = kpti_proto_number(entry, INTERN_ID, number);
    at = kpti_proto_text(at, INTERN_TEXT, text, KPTI_PERFETTO_MAX_NAME);
    at = kpti_proto_close(content, kpti_proto_close(entry, at));
    kpti_out_wrote(&w->base.out, kpti_proto_close(packet, at));
}
