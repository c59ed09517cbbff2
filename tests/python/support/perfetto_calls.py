"""Reads a Perfetto trace with Perfetto's own descriptions of its messages, and prints it as JSON:
{"calls": [[tid, name, start ns, end ns, source, annotations], ...], "threads": {tid: name}, ...}. "slices" has those of
the calls that have a category: [[category, name, flows, annotations, name of the track, name of its parent], ...].

usage: perfetto_calls.py TRACE        run by a Python that has the package `perfetto`
"""
import json
import sys

from google.protobuf import unknown_fields
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as proto

UNIX, DELTAS = proto.BUILTIN_CLOCK_REALTIME, 64


def check_known(message):
    """Checks that Perfetto knows every field, with its type."""
    assert not len(unknown_fields.UnknownFieldSet(message)), message
    for field, value in message.ListFields():
        if field.message_type:
            for each in value if field.is_repeated else [value]:
                check_known(each)


class Sequence:
    """The state that packets of one sequence build up."""

    def __init__(self):
        self.defaults, self.now = None, None
        self.names, self.annotations, self.sources = {}, {}, {}
        self.categories, self.texts = {}, {}

    def take(self, packet):
        if packet.HasField("trace_packet_defaults"):
            self.defaults = packet.trace_packet_defaults
        self.names.update((n.iid, n.name) for n in packet.interned_data.event_names)
        self.annotations.update((n.iid, n.name) for n in packet.interned_data.debug_annotation_names)
        self.categories.update((c.iid, c.name) for c in packet.interned_data.event_categories)
        self.texts.update((t.iid, t.str.decode()) for t in packet.interned_data.debug_annotation_string_values)
        self.sources.update((s.iid, [s.file_name, s.function_name, s.line_number])
                            for s in packet.interned_data.source_locations)
        for clock in packet.clock_snapshot.clocks:
            if clock.clock_id == DELTAS:
                assert clock.is_incremental
                self.now = clock.timestamp

    def time(self, packet):
        clock = packet.timestamp_clock_id or self.defaults.timestamp_clock_id
        if clock == UNIX:
            return packet.timestamp
        assert clock == DELTAS
        self.now += packet.timestamp
        return self.now

    def notes(self, event):
        """Annotations as a dict."""
        found = {}
        for note in event.debug_annotations:
            field = note.WhichOneof("value")
            value = getattr(note, field)
            if field == "string_value_iid":
                value = self.texts[value]
            found[note.name or self.annotations[note.name_iid]] = \
                json.loads(value) if field == "legacy_json_value" else value
        return found


def read(path):
    trace = proto.Trace()
    with open(path, "rb") as file:
        trace.ParseFromString(file.read())
    check_known(trace)
    sequences, tracks, stacks, tasks = {}, {}, {}, set()
    result = {"calls": [], "marks": [], "values": [], "tasks": [], "slices": [], "threads": {}, "process": None}
    for packet in trace.packet:
        assert packet.trusted_packet_sequence_id
        if packet.sequence_flags & proto.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED:
            sequences[packet.trusted_packet_sequence_id] = Sequence()
        sequence = sequences[packet.trusted_packet_sequence_id]
        sequence.take(packet)
        if packet.HasField("track_descriptor"):
            track = tracks[packet.track_descriptor.uuid] = packet.track_descriptor
            if track.HasField("process"):
                result["process"] = track.process.process_name
            if track.HasField("thread"):
                result["threads"][track.thread.tid] = track.thread.thread_name
        if not packet.HasField("track_event"):
            continue
        event, ns = packet.track_event, sequence.time(packet)
        uuid = event.track_uuid or sequence.defaults.track_event_defaults.track_uuid
        tid, notes = tracks[uuid].thread.tid, sequence.notes(event)
        name = event.name or sequence.names.get(event.name_iid)
        if event.type == proto.TrackEvent.TYPE_SLICE_BEGIN:
            if "asyncio_task" in event.categories:
                tasks.add(uuid)
            kinds = [*event.categories, *(sequence.categories[number] for number in event.category_iids)]
            stacks.setdefault(uuid, []).append((name, ns, sequence.sources.get(event.source_location_iid), notes, kinds,
                                                list(event.flow_ids)))
        elif event.type == proto.TrackEvent.TYPE_SLICE_END:
            name, start, source, before, kinds, flows = stacks[uuid].pop()
            if uuid in tasks:
                result["tasks"].append([tracks[uuid].name, name, start, ns])
                continue
            result["calls"].append([tid, name, start, ns, source, {**before, **notes}])
            if kinds:
                parent = tracks.get(tracks[uuid].parent_uuid)
                result["slices"].append([kinds[0], name, flows, {**before, **notes}, tracks[uuid].name,
                                         parent.name if parent else ""])
        elif event.type == proto.TrackEvent.TYPE_INSTANT:
            result["marks"].append([tid, name, ns, notes])
        else:
            result["values"].append([tracks[uuid].name, ns, getattr(event, event.WhichOneof("counter_value_field"))])
    assert not any(stacks.values()), "a slice does not end"
    return result


print(json.dumps(read(sys.argv[1])))
