#include "tests/writers/readers.h"

#include <cmath>
#include <set>
#include <stdexcept>

#include "writers/perfetto/perfetto_wire.h"

static void must(bool holds, const std::string &what)
{
    if (!holds) throw std::runtime_error(what);
}

/* --- protocol buffers -------------------------------------------------------------------------- */

static uint64_t take_varint(const std::string &bytes, size_t &at)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        must(at < bytes.size(), "a number is cut");
        auto byte = static_cast<unsigned char>(bytes[at++]);
        value |= static_cast<uint64_t>(byte & 0x7F) << shift;
        if (byte < 0x80) return value;
    }
    throw std::runtime_error("a number is too long");
}

wire::wire(const std::string &bytes)
{
    for (size_t at = 0; at < bytes.size();) {
        uint64_t tag = take_varint(bytes, at);
        value v;
        if ((tag & 7) == 0) {
            v.number = take_varint(bytes, at);
        } else if ((tag & 7) == 1) {
            must(bytes.size() - at >= 8, "a fixed number is cut");
            memcpy(&v.number, bytes.data() + at, 8);
            at += 8;
        } else {
            must((tag & 7) == 2, "an unknown wire type");
            uint64_t size = take_varint(bytes, at);
            must(size <= bytes.size() - at, "a message is cut");
            v.bytes = bytes.substr(at, size);
            at += size;
        }
        fields[static_cast<uint32_t>(tag >> 3)].push_back(v);
    }
}

std::vector<wire> wire::messages(uint32_t field) const
{
    std::vector<wire> all;
    if (has(field))
        for (const value &v : fields.at(field))
            all.emplace_back(v.bytes);
    return all;
}

/* --- Perfetto ---------------------------------------------------------------------------------- */

namespace
{

struct sequence {
    bool begun = false;
    uint64_t track = 0;
    uint64_t clock = 0;
    uint64_t ns = 0; /* on its own clock */
    bool has_ns = false;
    std::map<uint64_t, std::string> names, annotations, sources;
};

struct track {
    std::string name;
    uint64_t tid = 0;
    bool is_counter = false;
    std::vector<note_seen> open;
};

class perfetto_reader
{
  public:
    explicit perfetto_reader(perfetto_trace &into) : out(into) {}

    void take(const wire &packet)
    {
        uint64_t number = packet.number(PACKET_SEQUENCE);
        must(number != 0, "a packet of no sequence");
        sequence &s = sequences[number];
        if (packet.number(PACKET_FLAGS) & PACKET_STATE_CLEARED) {
            must(!s.begun && packet.number(PACKET_FIRST), "a sequence begins twice");
            s.begun = true;
        }
        must(s.begun, "a sequence does not begin");
        if (packet.has(PACKET_DEFAULTS)) {
            wire defaults = packet.message(PACKET_DEFAULTS);
            s.clock = defaults.number(DEFAULTS_CLOCK);
            s.track = defaults.message(DEFAULTS_TRACK_EVENT).number(DEFAULTS_TRACK);
        }
        if (packet.has(PACKET_INTERNED)) intern(s, packet.message(PACKET_INTERNED));
        if (packet.has(PACKET_CLOCK_SNAPSHOT)) set_clock(s, packet.message(PACKET_CLOCK_SNAPSHOT));
        if (packet.has(PACKET_TRACK)) describe(packet.message(PACKET_TRACK));
        if (packet.has(PACKET_TRACK_EVENT))
            event(s, time_of(s, packet), packet.message(PACKET_TRACK_EVENT));
    }

    void end()
    {
        for (const auto &entry : tracks)
            must(entry.second.open.empty(), "a slice does not end: " + entry.second.name);
    }

  private:
    static void intern(sequence &s, const wire &interned)
    {
        for (const wire &entry : interned.messages(INTERNED_NAME))
            must(s.names.emplace(entry.number(INTERN_ID), entry.text(INTERN_TEXT)).second,
                 "a name is interned twice");
        for (const wire &entry : interned.messages(INTERNED_ANNOTATION))
            s.annotations[entry.number(INTERN_ID)] = entry.text(INTERN_TEXT);
        for (const wire &entry : interned.messages(INTERNED_SOURCE))
            s.sources[entry.number(INTERN_ID)] =
                entry.text(SOURCE_FILE) + ":" + std::to_string(entry.number(SOURCE_LINE));
    }
    static void set_clock(sequence &s, const wire &snapshot)
    {
        auto clocks = snapshot.messages(SNAPSHOT_CLOCK);
        must(clocks.size() == 2 && snapshot.number(SNAPSHOT_PRIMARY) == UNIX_CLOCK, "clocks");
        must(clocks[0].number(CLOCK_ID) == UNIX_CLOCK, "Unix time comes first");
        must(clocks[1].number(CLOCK_ID) == DELTA_CLOCK, "then the sequence's own");
        must(clocks[1].number(CLOCK_IS_INCREMENTAL) == 1, "which counts on");
        must(clocks[0].number(CLOCK_TIME) == clocks[1].number(CLOCK_TIME), "from the same time");
        s.ns = clocks[1].number(CLOCK_TIME);
        s.has_ns = true;
    }
    static int64_t time_of(sequence &s, const wire &packet)
    {
        uint64_t clock = packet.has(PACKET_CLOCK) ? packet.number(PACKET_CLOCK) : s.clock;
        must(packet.has(PACKET_TIMESTAMP), "an event without a time");
        if (clock == UNIX_CLOCK) return static_cast<int64_t>(packet.number(PACKET_TIMESTAMP));
        must(clock == DELTA_CLOCK && s.has_ns, "a clock that is not known");
        s.ns += packet.number(PACKET_TIMESTAMP);
        return static_cast<int64_t>(s.ns);
    }
    void describe(const wire &description)
    {
        track &t = tracks[description.number(TRACK_UUID)];
        t.name = description.text(TRACK_NAME);
        t.is_counter = description.has(TRACK_COUNTER);
        if (description.has(TRACK_PROCESS))
            out.process = description.message(TRACK_PROCESS).text(PROCESS_NAME);
        else
            must(tracks.count(description.number(TRACK_PARENT)), "a track without a parent");
        if (!description.has(TRACK_THREAD)) return;
        wire thread = description.message(TRACK_THREAD);
        t.tid = thread.number(THREAD_TID);
        t.name = thread.text(THREAD_NAME);
        out.threads.push_back(t.name);
    }
    static std::map<std::string, std::string> annotations(sequence &s, const wire &e)
    {
        std::map<std::string, std::string> all;
        for (const wire &a : e.messages(EVENT_ANNOTATION)) {
            std::string name = a.text(ANNOTATION_NAME);
            if (a.has(ANNOTATION_NAME_ID)) name = s.annotations.at(a.number(ANNOTATION_NAME_ID));
            std::string text = a.text(ANNOTATION_JSON);
            if (a.has(ANNOTATION_BOOL)) text = a.number(ANNOTATION_BOOL) ? "true" : "false";
            if (a.has(ANNOTATION_UINT)) text = std::to_string(a.number(ANNOTATION_UINT));
            must(all.emplace(name, text).second, "an annotation twice");
        }
        return all;
    }
    void event(sequence &s, int64_t ns, const wire &e)
    {
        uint64_t uuid = e.has(EVENT_TRACK) ? e.number(EVENT_TRACK) : s.track;
        must(tracks.count(uuid), "a track that is not known");
        track &t = tracks[uuid];
        note_seen n = {t.name, e.text(EVENT_NAME), ns, ns, annotations(s, e), {}, 0};
        if (e.has(EVENT_NAME_ID)) n.name = s.names.at(e.number(EVENT_NAME_ID));
        if (e.has(EVENT_SOURCE_ID)) out.sources[n.name] = s.sources.at(e.number(EVENT_SOURCE_ID));
        must(is_utf8(n.name), "a name that is no UTF-8");
        if (e.has(EVENT_FLOW)) n.flows.push_back(e.number(EVENT_FLOW));
        uint64_t bits = e.number(EVENT_DOUBLE);
        memcpy(&n.value, &bits, sizeof n.value);
        bool is_users = e.text(EVENT_CATEGORY) == "user_annotation";
        switch (e.number(EVENT_TYPE)) {
        case EVENT_BEGIN:
            n.value = is_users;
            t.open.push_back(n);
            break;
        case EVENT_END:
            must(!t.open.empty(), "a slice ends that did not begin");
            end_slice(t, ns, n);
            break;
        case EVENT_INSTANT:
            out.marks.push_back(n);
            break;
        case EVENT_COUNTER:
            must(t.is_counter, "a value on no counter");
            out.values.push_back(n);
            break;
        default:
            must(false, "an event of no type");
        }
    }
    void end_slice(track &t, int64_t ns, const note_seen &end)
    {
        note_seen n = t.open.back();
        t.open.pop_back();
        n.end_ns = ns;
        n.args.insert(end.args.begin(), end.args.end());
        if (n.value != 0) {
            out.spans.push_back(n);
            return;
        }
        out.calls.push_back({t.tid, n.name, n.start_ns, n.end_ns});
        if (!n.args.empty()) out.call_args[n.name] = n.args;
    }

    perfetto_trace &out;
    std::map<uint64_t, sequence> sequences;
    std::map<uint64_t, track> tracks;
};

} // namespace

/* Packets of several sequences may be in any order, if each track's events are in the order of time. The
 * loose events, which are last, have their own tracks. */
perfetto_trace::perfetto_trace(const std::string &bytes)
{
    perfetto_reader reader(*this);
    for (const wire &packet : wire(bytes).messages(TRACE_PACKET))
        reader.take(packet);
    reader.end();
    std::sort(calls.begin(), calls.end());
}

/* --- JSON -------------------------------------------------------------------------------------- */

/* "123.456" in microseconds, exactly. */
static int64_t exact_ns(const std::string &text)
{
    size_t point = text.find('.');
    return std::stoll(text.substr(0, point) + text.substr(point + 1));
}

std::vector<seen> chrome_calls(const json &trace, const std::string &category)
{
    std::vector<seen> all;
    int64_t base = std::stoll(trace["baseTimeNanoseconds"].text);
    for (const json &e : trace["traceEvents"].items) {
        if (e["ph"].text != "X" || e["cat"].text != category) continue;
        int64_t start = base + exact_ns(e["ts"].text);
        all.push_back(
            {std::stoull(e["tid"].text), e["name"].text, start, start + exact_ns(e["dur"].text)});
    }
    std::sort(all.begin(), all.end());
    return all;
}

static void check_keys(const json &object, const std::set<std::string> &needed,
                       const std::set<std::string> &allowed)
{
    must(object.is == json::OBJECT, "an object is expected");
    for (const std::string &key : needed)
        must(object.has(key), "there is no " + key);
    for (const auto &member : object.members)
        must(needed.count(member.first) || allowed.count(member.first),
             member.first + " is unknown");
}

static std::vector<std::string> speedscope_frames(const json &file)
{
    std::vector<std::string> frames;
    check_keys(file["shared"], {"frames"}, {});
    must(file["shared"]["frames"].is == json::ARRAY, "frames are an array");
    for (const json &frame : file["shared"]["frames"].items) {
        check_keys(frame, {"name"}, {"file", "line", "col"});
        must(frame["name"].is == json::STRING, "a frame's name is a text");
        must(!frame.has("line") || frame["line"].is == json::NUMBER, "a line is a number");
        frames.push_back(frame["name"].text);
    }
    return frames;
}

static void speedscope_profile(const json &profile, const std::vector<std::string> &frames,
                               uint64_t tid, int64_t base_ns, std::vector<seen> &all)
{
    std::vector<std::pair<size_t, int64_t>> open;
    check_keys(profile, {"type", "name", "unit", "startValue", "endValue", "events"}, {});
    must(profile["type"].text == "evented" && profile["unit"].text == "nanoseconds", "its kind");
    int64_t last = std::stoll(profile["startValue"].text);
    for (const json &event : profile["events"].items) {
        check_keys(event, {"type", "frame", "at"}, {});
        int64_t at = std::stoll(event["at"].text);
        size_t frame = std::stoul(event["frame"].text);
        must(at >= last && frame < frames.size(), "events are in order, and of frames");
        last = at;
        if (event["type"].text == "O") {
            open.emplace_back(frame, at);
        } else {
            must(event["type"].text == "C" && !open.empty(), "O or C");
            must(open.back().first == frame, "the innermost frame closes");
            all.push_back({tid, frames[frame], base_ns + open.back().second, base_ns + at});
            open.pop_back();
        }
    }
    must(open.empty() && last == std::stoll(profile["endValue"].text), "all frames close");
}

std::vector<seen> speedscope_calls(const json &file, int64_t base_ns)
{
    std::vector<seen> all;
    uint64_t tid = tape::FIRST_TID;
    check_keys(file, {"$schema", "shared", "profiles"}, {"name", "activeProfileIndex", "exporter"});
    must(file["$schema"].text == "https://www.speedscope.app/file-format-schema.json", "$schema");
    auto frames = speedscope_frames(file);
    for (const json &profile : file["profiles"].items)
        speedscope_profile(profile, frames, tid++, base_ns, all);
    std::sort(all.begin(), all.end());
    return all;
}
