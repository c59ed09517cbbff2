/* note_formats_test.cc: marks, spans and counters in each format. */
#include <cmath>
#include <limits>

#include "tests/fixtures/batches/writing.h"

namespace
{

class NoteFormats : public Writing
{
  protected:
    NoteFormats()
    {
        f = t.name("f");
        g = t.name("g");
        main = t.thread("Main");
    }

    /* The user's events of a phase. */
    static std::vector<json> events(const json &trace, const std::string &phase)
    {
        std::vector<json> found;
        for (const json &e : trace["traceEvents"].items)
            if (e["ph"].text == phase && (e["cat"].text == "user_annotation")) found.push_back(e);
        return found;
    }
    /* A begin or an end on a thread. */
    uint32_t begin(const std::string &name, int64_t ns, uint32_t thread = 0)
    {
        uint32_t number = note(KPTI_NOTE_BEGIN, name, ns, 0, 0, thread, "\"k\":\"v\"");
        t.point(thread, number, ns);
        return number;
    }
    void end(uint32_t begin, int64_t ns, uint32_t thread = 0)
    {
        t.point(thread, note(KPTI_NOTE_END, "", ns, begin, 0, thread), ns);
    }
    /* Name, start and end of async events. */
    static std::vector<seen> async_spans(const json &trace)
    {
        std::vector<seen> found;
        auto begins = events(trace, "b"), ends = events(trace, "e");
        EXPECT_EQ(begins.size(), ends.size());
        for (size_t i = 0; i < begins.size(); i++) {
            EXPECT_EQ(begins[i]["id"].text, ends[i]["id"].text);
            found.push_back({std::stoull(begins[i]["tid"].text), begins[i]["name"].text,
                             std::llround(begins[i]["ts"].number() * 1000) + 500,
                             std::llround(ends[i]["ts"].number() * 1000) + 500});
        }
        return found;
    }
    /* Returns the spans of a Perfetto trace that have their own track. */
    static std::vector<note_seen> loose_spans(const perfetto_trace &trace)
    {
        std::vector<note_seen> found;
        for (const note_seen &n : trace.spans)
            if (n.track == n.name) found.push_back(n);
        return found;
    }

    tape t;
    uint32_t f, g, main;
};

TEST_F(NoteFormats, AMarkIsAnInstant)
{
    t.enter(main, f, 1000);
    t.point(main, note(KPTI_NOTE_MARK, "step \"1\"", 1500, 0, 0, 0, "\"epoch\":3,\"x\":\"y\""),
            1500);
    t.leave(main, 2000);
    json trace = chrome(t);
    auto marks = events(trace, "i");
    ASSERT_EQ(marks.size(), 1u);
    EXPECT_EQ(marks[0]["name"].text, "step \"1\"");
    EXPECT_EQ(marks[0]["s"].text, "t");
    EXPECT_EQ(marks[0]["ts"].text, "1.000");
    EXPECT_EQ(marks[0]["tid"].text, "100");
    EXPECT_EQ(marks[0]["args"]["epoch"].text, "3");
    EXPECT_EQ(marks[0]["args"]["x"].text, "y");
    EXPECT_EQ(chrome_calls(trace), t.expected());
    EXPECT_EQ(trace["otherData"]["calls"].text, "1") << "a note is no call";
    perfetto_trace other = perfetto(t);
    ASSERT_EQ(other.marks.size(), 1u);
    EXPECT_EQ(other.marks[0].name, "step \"1\"");
    EXPECT_EQ(other.marks[0].track, "Main");
    EXPECT_EQ(other.marks[0].start_ns, 1500);
    EXPECT_EQ(other.marks[0].args["args"], "{\"epoch\":3,\"x\":\"y\"}");
    EXPECT_EQ(other.calls, t.expected());
    EXPECT_EQ(speedscope(t), t.expected());
    EXPECT_EQ(collapsed(t).size(), 1u);
}

TEST_F(NoteFormats, ACounterHasATrackOfItsOwn)
{
    for (int64_t i = 0; i < 4; i++)
        t.point(main, note(KPTI_NOTE_COUNTER, i % 2 ? "loss" : "rate", 1000 + i), 1000 + i);
    json trace = chrome(t);
    std::vector<json> values = events(trace, "C");
    ASSERT_EQ(values.size(), 4u);
    EXPECT_EQ(values[1]["name"].text, "loss");
    EXPECT_EQ(values[1]["args"]["value"].text, "2.5");
    perfetto_trace other = perfetto(t);
    ASSERT_EQ(other.values.size(), 4u);
    EXPECT_EQ(other.values[0].track, "rate");
    EXPECT_EQ(other.values[3].track, "loss");
    EXPECT_EQ(other.values[3].start_ns, 1003);
    EXPECT_EQ(other.values[3].value, 2.5);
}

TEST_F(NoteFormats, WhatIsNoNumberIsNoValue)
{
    kpti_note n = {};
    n.what = KPTI_NOTE_COUNTER;
    n.name = {"c", 1};
    n.value = std::numeric_limits<double>::quiet_NaN();
    t.point(main, kpti_notes_add(&notes, &n), 1000);
    EXPECT_EQ(events(chrome(t), "C").at(0)["args"]["value"].is, json::NOTHING);
    EXPECT_EQ(perfetto(t).values.size(), 0u);
}

TEST_F(NoteFormats, ASpanThatNestsIsAFrame)
{
    t.enter(main, f, 10000);
    uint32_t outer = begin("outer", 11000);
    uint32_t inner = begin("inner", 12000);
    t.enter(main, g, 13000);
    t.leave(main, 14000);
    end(inner, 15000);
    end(outer, 16000);
    t.leave(main, 20000);
    std::vector<seen> spans = {{100, "outer", 11000, 16000}, {100, "inner", 12000, 15000}};
    json trace = chrome(t);
    EXPECT_EQ(chrome_calls(trace, "user_annotation"), spans);
    EXPECT_EQ(events(trace, "X").at(0)["args"]["k"].text, "v");
    EXPECT_EQ(async_spans(trace).size(), 0u);
    perfetto_trace other = perfetto(t);
    ASSERT_EQ(other.spans.size(), 2u);
    EXPECT_EQ(other.spans[0].name, "inner");
    EXPECT_EQ(other.spans[0].track, "Main");
    EXPECT_EQ(other.spans[1].end_ns, 16000);
    EXPECT_EQ(other.spans[1].args.size(), 1u) << "the user's own";
    auto frames = t.expected();
    frames.insert(frames.end(), spans.begin(), spans.end());
    std::sort(frames.begin(), frames.end());
    EXPECT_EQ(speedscope(t), frames);
    std::map<std::string, uint64_t> lines = {
        {"Main;f", 5}, {"Main;f;outer", 2}, {"Main;f;outer;inner", 2}, {"Main;f;outer;inner;g", 1}};
    EXPECT_EQ(collapsed(t), lines);
}

TEST_F(NoteFormats, SpansThatCrossStandBesideTheCalls)
{
    t.enter(main, f, 1000);
    uint32_t first = begin("first", 2000), second = begin("second", 3000);
    end(first, 4000);
    end(second, 5000);
    t.leave(main, 6000);
    json trace = chrome(t);
    EXPECT_EQ(chrome_calls(trace, "user_annotation"),
              (std::vector<seen>{{100, "first", 2000, 4000}}));
    EXPECT_EQ(async_spans(trace), (std::vector<seen>{{100, "second", 3000, 5000}}));
    perfetto_trace other = perfetto(t);
    ASSERT_EQ(other.spans.size(), 3u) << "the second is cut, and whole beside";
    EXPECT_EQ(other.spans[0].args["clamped"], "true");
    auto loose = loose_spans(other);
    ASSERT_EQ(loose.size(), 1u);
    EXPECT_EQ(loose[0].name, "second");
    EXPECT_EQ(loose[0].end_ns, 5000);
    EXPECT_EQ(speedscope(t).size(), 3u);
}

/* As in a coroutine that waits in between. */
TEST_F(NoteFormats, ASpanThatOutlivesItsCallStandsBesideTheCalls)
{
    t.enter(main, f, 1000);
    uint32_t span = begin("span", 2000);
    t.leave(main, 3000);
    t.enter(main, f, 4000);
    end(span, 5000);
    t.leave(main, 6000);
    json trace = chrome(t);
    EXPECT_EQ(chrome_calls(trace, "user_annotation").size(), 0u);
    EXPECT_EQ(async_spans(trace), (std::vector<seen>{{100, "span", 2000, 5000}}));
    perfetto_trace other = perfetto(t);
    EXPECT_EQ(other.calls, t.expected());
    ASSERT_EQ(loose_spans(other).size(), 1u);
    EXPECT_EQ(loose_spans(other)[0].start_ns, 2000);
    EXPECT_EQ(loose_spans(other)[0].end_ns, 5000);
    EXPECT_EQ(loose_spans(other)[0].args["args"], "{\"k\":\"v\"}");
    EXPECT_EQ(speedscope(t).size(), 3u) << "it ends with its call there";
}

TEST_F(NoteFormats, ASpanThatEndsInAnInnerCallEndsWithThatAsAFrame)
{
    t.enter(main, f, 1000);
    for (int64_t i = 0; i < 3; i++) {
        uint32_t span = begin("span", 2000 + i * 1000);
        t.enter(main, g, 2100 + i * 1000);
        end(span, 2200 + i * 1000);
        t.leave(main, 2300 + i * 1000);
    }
    t.leave(main, 6000);
    EXPECT_EQ(async_spans(chrome(t)).size(), 3u);
    perfetto_trace other = perfetto(t);
    EXPECT_EQ(other.calls, t.expected());
    EXPECT_EQ(loose_spans(other).size(), 3u);
    EXPECT_EQ(loose_spans(other)[2].end_ns, 4200);
    auto frames = speedscope(t);
    EXPECT_EQ(frames.size(), 7u);
    EXPECT_EQ(frames[1].name, "span");
    EXPECT_EQ(frames[1].end_ns, 2300);
}

TEST_F(NoteFormats, ASpanMayEndOnAnotherThread)
{
    uint32_t other_thread = t.thread("Other");
    t.enter(main, f, 1000);
    uint32_t span = begin("request", 2000, main);
    t.leave(main, 3000);
    t.enter(other_thread, g, 4000);
    end(span, 5000, other_thread);
    t.leave(other_thread, 6000);
    json trace = chrome(t);
    EXPECT_EQ(async_spans(trace), (std::vector<seen>{{100, "request", 2000, 5000}}));
    EXPECT_EQ(events(trace, "e").at(0)["tid"].text, "101");
    perfetto_trace other = perfetto(t);
    ASSERT_EQ(other.spans.size(), 1u);
    EXPECT_EQ(other.spans[0].track, "request");
    EXPECT_EQ(other.spans[0].args["thread"], "100");
    EXPECT_EQ(speedscope(t), t.expected());
}

TEST_F(NoteFormats, ASpanThatNobodyEndedEndsWithTheTrace)
{
    t.enter(main, f, 1000);
    (void)begin("span", 2000);
    t.enter(main, g, 3000);
    t.leave(main, 4000, KPT_ACTIVITY_ENDED_BY_STOP);
    t.leave(main, 4000, KPT_ACTIVITY_ENDED_BY_STOP);
    (void)begin("alone", 4000);
    json trace = chrome(t);
    EXPECT_EQ(async_spans(trace),
              (std::vector<seen>{{100, "span", 2000, 4000}, {100, "alone", 4000, 4000}}));
    EXPECT_EQ(events(trace, "b").at(0)["args"]["ended by stop"].text, "true");
    EXPECT_EQ(events(trace, "b").at(0)["args"]["k"].text, "v");
    perfetto_trace other = perfetto(t);
    ASSERT_EQ(other.spans.size(), 2u);
    for (note_seen &n : other.spans) {
        EXPECT_EQ(n.end_ns, 4000);
        EXPECT_EQ(n.track, "Main");
        EXPECT_EQ(n.args["ended by stop"], "true");
    }
    EXPECT_EQ(speedscope(t).size(), 4u);
}

TEST_F(NoteFormats, AnEndWhoseBeginWasDroppedBeganBefore)
{
    t.enter(main, f, 1000);
    uint32_t dropped = note(KPTI_NOTE_BEGIN, "lost", 1);
    t.point(main, note(KPTI_NOTE_END, "lost", 1500, dropped), 1500);
    t.leave(main, 2000);
    kpti_notes_keep_last(&notes, 1);
    json trace = chrome(t);
    EXPECT_EQ(async_spans(trace), (std::vector<seen>{{100, "lost", 1000, 1500}}));
    EXPECT_EQ(events(trace, "b").at(0)["args"]["began before"].text, "true");
    EXPECT_EQ(loose_spans(perfetto(t)).at(0).args["began before"], "true");
    EXPECT_EQ(speedscope(t), t.expected());
}

TEST_F(NoteFormats, NotesWhosePointsNeverCameHaveTheirOwnTime)
{
    t.enter(main, f, 1000);
    t.leave(main, 2000);
    (void)note(KPTI_NOTE_MARK, "mark", 3000, 0, 0, 7);
    (void)note(KPTI_NOTE_COUNTER, "counter", 3500, 0, 0, 7);
    uint32_t span = note(KPTI_NOTE_BEGIN, "span", 4000, 0, 0, 7);
    (void)note(KPTI_NOTE_END, "", 5000, span, 0, 7);
    json trace = chrome(t);
    EXPECT_EQ(events(trace, "i").at(0)["tid"].text, "107");
    EXPECT_EQ(events(trace, "i").at(0)["ts"].text, "2.500");
    EXPECT_EQ(events(trace, "C").size(), 1u);
    EXPECT_EQ(async_spans(trace), (std::vector<seen>{{107, "span", 4000, 5000}}));
    perfetto_trace other = perfetto(t);
    EXPECT_EQ(other.marks.at(0).start_ns, 3000);
    EXPECT_EQ(other.marks.at(0).args["thread"], "107");
    EXPECT_EQ(other.values.at(0).start_ns, 3500);
    EXPECT_EQ(loose_spans(other).at(0).end_ns, 5000);
}

TEST_F(NoteFormats, PointsOfNoNoteAreLeftOut)
{
    t.enter(main, f, 1000);
    t.point(main, 77, 1500);
    t.leave(main, 2000);
    EXPECT_EQ(chrome_calls(chrome(t)), t.expected());
    EXPECT_EQ(perfetto(t).calls, t.expected());
    EXPECT_EQ(perfetto(t).marks.size(), 0u);
    EXPECT_EQ(speedscope(t), t.expected());
}

TEST_F(NoteFormats, AFlowLeadsFromTheFirstToTheLast)
{
    uint32_t other_thread = t.thread("Other");
    t.enter(main, f, 1000);
    t.enter(other_thread, g, 1000);
    t.point(other_thread, note(KPTI_NOTE_MARK, "sent", 1500, 0, 9, 1), 1500);
    uint32_t span = note(KPTI_NOTE_BEGIN, "work", 2000, 0, 9);
    t.point(main, span, 2000);
    end(span, 2500);
    t.point(other_thread, note(KPTI_NOTE_MARK, "done", 3000, 0, 9, 1), 3000);
    t.point(main, note(KPTI_NOTE_MARK, "alone", 3500, 0, 10), 3500);
    t.leave(main, 4000);
    t.leave(other_thread, 4000);
    json trace = chrome(t);
    auto starts = events(trace, "s"), steps = events(trace, "t"), ends = events(trace, "f");
    ASSERT_EQ(starts.size() + steps.size() + ends.size(), 3u);
    EXPECT_EQ(starts.at(0)["ts"].text, "1.000");
    EXPECT_EQ(starts.at(0)["tid"].text, "101");
    EXPECT_EQ(steps.at(0)["ts"].text, "1.500");
    EXPECT_EQ(ends.at(0)["ts"].text, "2.500");
    EXPECT_EQ(ends.at(0)["id"].text, "9");
    EXPECT_EQ(ends.at(0)["bp"].text, "e");
    perfetto_trace other = perfetto(t);
    EXPECT_EQ(other.marks.at(0).flows, std::vector<uint64_t>{9});
    EXPECT_EQ(other.spans.at(0).flows, std::vector<uint64_t>{9});
}

} // namespace
