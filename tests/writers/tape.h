/* tape.h: a recording made by hand, call by call, that can be delivered in the order of threads and in the
 * order of time, as by a tracer. */
#ifndef WRITERS_TAPE_H
#define WRITERS_TAPE_H

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "tests/writers/parcel.h"
#include "writers/annotations/notes.h"

/* A call as every format should have it. */
struct seen {
    uint64_t tid;
    std::string name;
    int64_t start_ns;
    int64_t end_ns;
    bool operator<(const seen &other) const
    {
        return std::tie(tid, start_ns, end_ns, name) <
               std::tie(other.tid, other.start_ns, other.end_ns, other.name);
    }
    bool operator==(const seen &other) const
    {
        return !(*this < other) && !(other < *this);
    }
};

class tape
{
  public:
    enum { FIRST_TID = 100 };

    uint32_t name(const std::string &display, const std::string &file = "", uint32_t line = 0)
    {
        names.push_back({display, file, line});
        return static_cast<uint32_t>(names.size() - 1);
    }
    uint32_t thread(const std::string &text)
    {
        threads.push_back(text);
        events.emplace_back();
        open.emplace_back();
        return static_cast<uint32_t>(threads.size() - 1);
    }
    kpt_activity &enter(uint32_t thread, uint32_t name, int64_t ns)
    {
        kpt_activity a = parcel::plain(0, 0, ns, ns);
        a.thread = thread;
        a.name = name;
        a.depth = static_cast<uint32_t>(open[thread].size());
        open[thread].push_back(add(thread, KPT_PHASE_BEGIN, ns, a));
        return calls.back();
    }
    void leave(uint32_t thread, int64_t ns, uint32_t flags = 0)
    {
        size_t call = open[thread].back();
        open[thread].pop_back();
        calls[call].end_ns = ns;
        calls[call].flags |= flags;
        events[thread].push_back({KPT_PHASE_END, ns, call});
    }
    void point(uint32_t thread, uint64_t number, int64_t ns)
    {
        kpt_activity a = parcel::plain(0, 0, ns, ns);
        a.thread = thread;
        a.kind = KPT_KIND_POINT;
        a.value0 = number;
        (void)add(thread, KPT_PHASE_COMPLETE, ns, a);
    }

    /* Makes COUNT random calls on each of THREADS threads, some of them recursive, some without duration. */
    static tape random(uint32_t seed, uint32_t thread_count, uint32_t count)
    {
        tape t;
        std::mt19937 next(seed);
        for (int i = 0; i < 20; i++)
            t.name("file.py(" + std::to_string(i) + "): f" + std::to_string(i),
                   i % 3 ? "/some/file.py" : "", static_cast<uint32_t>(i));
        for (uint32_t thread = 0; thread < thread_count; thread++) {
            int64_t ns = 1000 + static_cast<int64_t>(next() % 1000);
            t.thread("Thread-" + std::to_string(thread));
            for (uint32_t begun = 0; begun < count || !t.open[thread].empty();) {
                ns += next() % 3 ? static_cast<int64_t>(next() % 5000) : 0;
                if (begun < count && (t.open[thread].empty() || next() % 9 < 5)) {
                    t.enter(thread, static_cast<uint32_t>(next() % 20), ns);
                    begun++;
                } else {
                    t.leave(thread, ns);
                }
            }
        }
        return t;
    }

    /* Returns all of it as one batch. */
    parcel delivery(uint32_t order, uint32_t extra_bytes = 0)
    {
        parcel p(extra_bytes);
        p.order = order;
        number();
        for (uint32_t i = 0; i < names.size(); i++)
            p.name(i, names[i].display, names[i].line, names[i].file);
        for (uint32_t i = 0; i < threads.size(); i++)
            p.thread(i, FIRST_TID + i, threads[i]);
        std::vector<event> all;
        for (const auto &own : events)
            for (const event &e : own)
                if (order == KPT_ORDER_TIME || e.phase != KPT_PHASE_BEGIN) all.push_back(e);
        if (order == KPT_ORDER_TIME)
            std::stable_sort(all.begin(), all.end(),
                             [](const event &a, const event &b) { return a.ns < b.ns; });
        for (const event &e : all) {
            kpt_activity a = calls[e.call];
            if (order == KPT_ORDER_TIME) a.phase = e.phase;
            if (a.phase == KPT_PHASE_BEGIN) a.end_ns = a.start_ns;
            p.call(a);
        }
        return p;
    }

    /* All calls, without points. */
    std::vector<seen> expected() const
    {
        std::vector<seen> all;
        for (const kpt_activity &a : calls)
            if (a.kind != KPT_KIND_POINT)
                all.push_back({FIRST_TID + a.thread, names[a.name].display, a.start_ns, a.end_ns});
        std::sort(all.begin(), all.end());
        return all;
    }

    std::vector<kpt_activity> calls; /* and points, in the order in which they began */

  private:
    struct function {
        std::string display, file;
        uint32_t line;
    };
    struct event {
        uint16_t phase;
        int64_t ns;
        size_t call;
    };

    size_t add(uint32_t thread, uint16_t phase, int64_t ns, const kpt_activity &a)
    {
        parents.push_back(open[thread].empty() ? SIZE_MAX : open[thread].back());
        calls.push_back(a);
        events[thread].push_back({phase, ns, calls.size() - 1});
        return calls.size() - 1;
    }
    /* Ids in pre-order, thread after thread. */
    void number()
    {
        uint64_t id = 0;
        for (const auto &own : events)
            for (const event &e : own) {
                if (e.phase == KPT_PHASE_END) continue;
                size_t parent = parents[e.call];
                if (e.phase == KPT_PHASE_BEGIN) calls[e.call].id = ++id;
                calls[e.call].parent_id = parent == SIZE_MAX ? 0 : calls[parent].id;
            }
    }

    std::vector<function> names;
    std::vector<std::string> threads;
    std::vector<std::vector<event>> events; /* by thread */
    std::vector<std::vector<size_t>> open;
    std::vector<size_t> parents;
};

#endif
