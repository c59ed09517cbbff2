#include "tests/writers/report_reader.h"

#include <cstring>
#include <stdexcept>

#include "tests/writers/inflate.h"

namespace
{

void must(bool holds, const std::string &what)
{
    if (!holds) throw std::runtime_error("report: " + what);
}

std::string from_base64(const std::string &text)
{
    static const std::string digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes;
    uint32_t bits = 0, count = 0;
    must(text.size() % 4 == 0, "base64 comes in fours");
    for (char c : text) {
        if (c == '=') continue;
        size_t digit = digits.find(c);
        must(digit != std::string::npos, "no base64");
        bits = bits << 6 | static_cast<uint32_t>(digit);
        count += 6;
        if (count < 8) continue;
        count -= 8;
        bytes += static_cast<char>(bits >> count);
        bits &= (1u << count) - 1;
    }
    must(bits == 0, "nothing is left of base64");
    return bytes;
}

std::string unpacked(const std::string &pack, const std::string &bytes)
{
    must(pack == "gzip", "its packing");
    return gunzipped(bytes);
}

std::string between(const std::string &text, const std::string &before, const std::string &after)
{
    size_t from = text.find(before);
    must(from != std::string::npos, "there is no " + before);
    from += before.size();
    size_t to = text.find(after, from);
    must(to != std::string::npos, "there is no " + after);
    return text.substr(from, to - from);
}

struct track_state {
    uint64_t tid = 0;
    uint64_t frames = 0;
    int64_t ns = 0;
    struct open_frame {
        bool is_span;
        std::string name;
        int64_t ns;
    };
    std::vector<open_frame> open;
};

class reader
{
  public:
    reader(report_trace *to, const std::string &bytes) : trace(to), data(bytes)
    {
        struct block {
            uint64_t thread;
            size_t from, size;
        };
        std::vector<block> blocks;
        for (uint64_t size = varint(); size; size = varint()) {
            uint64_t thread = varint();
            blocks.push_back({thread, at, size});
            at += size;
            must(at < data.size(), "a block ends in the data");
        }
        to->text = read_json(data.substr(at));
        read_text();
        for (const block &b : blocks) {
            must(track_states.count(b.thread) != 0, "a block's thread is a track");
            at = b.from;
            while (at < b.from + b.size)
                event(track_states[b.thread]);
            must(at == b.from + b.size, "events end with their block");
        }
        for (const auto &l : track_states)
            must(l.second.frames == 0, "as many frames as its track says");
    }

  private:
    uint64_t varint()
    {
        uint64_t value = 0;
        for (unsigned shift = 0;; shift += 7) {
            must(at < data.size(), "a number ends in the data");
            value |= static_cast<uint64_t>(data[at] & 0x7F) << shift;
            if (!(data[at++] & 0x80)) return value;
        }
    }
    void read_text()
    {
        int64_t first_ns = std::stoll(trace->text["first_ns"].text);
        must(trace->text["format"].text == "1", "its format");
        for (const json &n : trace->text["names"].items)
            names[std::stoull(n.items[0].text)] = n.items[1].text;
        for (const json &n : trace->text["notes"].items)
            notes[std::stoull(n.items[0].text)] = n.items[1].text;
        for (const json &t : trace->text["tracks"].items) {
            track_state &l = track_states[std::stoull(t["id"].text)];
            l.tid = t.has("tid") ? std::stoull(t["tid"].text) : 0;
            l.frames = std::stoull(t["spans"].text);
            l.ns = first_ns + std::stoll(t["start"].text);
        }
    }
    void open(track_state &l, bool is_span, const std::string &name)
    {
        l.open.push_back({is_span, name, l.ns});
        l.frames--;
    }
    std::string close(track_state &l)
    {
        must(!l.open.empty(), "what closes is open");
        auto frame = l.open.back();
        l.open.pop_back();
        (frame.is_span ? trace->spans : trace->calls)
            .push_back({l.tid, frame.name, frame.ns, l.ns});
        return frame.name;
    }
    std::string name(uint64_t number) const
    {
        return names.count(number) ? names.at(number) : "unknown";
    }
    void event(track_state &l)
    {
        enum { CLOSE, CALL, SPAN, MARK, COUNTER, CLOSE_MORE, CALL_MORE, TASK };
        uint64_t head = varint();
        l.ns += static_cast<int64_t>(head >> 3);
        switch (head & 7) {
        case CLOSE:
            (void)close(l);
            break;
        case CALL:
            open(l, false, name(varint()));
            break;
        case SPAN:
            open(l, true, notes.at(varint()));
            break;
        case MARK:
            trace->marks.push_back({l.tid, notes.at(varint()), l.ns});
            break;
        case COUNTER:
            trace->values.push_back({l.tid, notes.at(varint()), l.ns});
            break;
        case CLOSE_MORE: {
            report_more &more = trace->more[close(l)];
            uint64_t flags = varint();
            more.flags |= flags & 0xFF;
            for (int i = 0; flags & 0x100 && i < 3; i++)
                more.collection.push_back(varint());
            break;
        }
        case CALL_MORE: {
            std::string called = name(varint());
            open(l, false, called);
            trace->more[called].line = varint();
            trace->more[called].flags |= varint();
            break;
        }
        case TASK:
            must(!l.open.empty() && !l.open.back().is_span && l.open.back().ns == l.ns,
                 "a resume is a call that has just opened");
            trace->resumes.push_back({l.tid, notes.at(varint()), l.ns});
            break;
        default:
            must(false, "what an event is");
        }
    }

    report_trace *trace;
    std::string data;
    size_t at = 0;
    std::map<uint64_t, std::string> names, notes;
    std::map<uint64_t, track_state> track_states;
};

} // namespace

report_trace::report_trace(const std::string &html)
{
    std::string section =
        "<script type=\"text/plain\" class=\"section\" data-kind=\"trace\" data-pack=\"";
    must(html.compare(0, 15, "<!doctype html>") == 0, "it is a page");
    must(html.rfind("</script>\n") == html.size() - 10, "the page ends with its section");
    std::string pack = between(html, section, "\">");
    section += pack + "\">";
    (void)reader(this, unpacked(pack, from_base64(between(html, section, "</script>"))));
    std::sort(calls.begin(), calls.end());
    std::sort(spans.begin(), spans.end());
}
