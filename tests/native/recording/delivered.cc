#include "tests/native/recording/delivered.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

namespace
{

struct Ctx {
    Taken *taken;
    const Taking *taking;
};

void complain(Taken *taken, const char *what)
{
    if (taken->wrong.size() < 10) taken->wrong.emplace_back(what);
}

kpt_status sink(void *ctx, const kpt_batch *batch)
{
    Taken *taken = static_cast<Ctx *>(ctx)->taken;
    const Taking *taking = static_cast<Ctx *>(ctx)->taking;
    taken->batches++;
    taken->largest = std::max(taken->largest, batch->activity_count);
    if (batch->struct_size != sizeof *batch || batch->order != taking->order ||
        batch->activity_stride != sizeof(kpt_activity) || batch->name_stride != sizeof(kpt_name) ||
        batch->thread_stride != sizeof(kpt_thread))
        complain(taken, "a batch is malformed");
    if (!batch->activity_count) complain(taken, "a batch is empty");
    for (uint32_t i = 0; i < batch->name_count; i++)
        if (!taken->names.emplace(batch->names[i].index, batch->names[i]).second)
            complain(taken, "a name came twice");
    for (uint32_t i = 0; i < batch->name_count; i++)
        if (batch->names[i].flags & KPT_NAME_INPUTS)
            taken->inputs[batch->names[i].index] =
                std::string(batch->names[i].function.data, batch->names[i].function.size);
    for (uint32_t i = 0; i < batch->thread_count; i++)
        if (!taken->threads.emplace(batch->threads[i].index, batch->threads[i]).second)
            complain(taken, "a thread came twice");
    for (uint32_t i = 0; i < batch->activity_count; i++) {
        const kpt_activity &a = batch->activities[i];
        if (!taken->names.count(a.name)) complain(taken, "an activity came before its name");
        if (!taken->threads.count(a.thread)) complain(taken, "an activity came before its thread");
        if (a.kind == KPT_KIND_POINT)
            taken->points.push_back({a, taken->activities.size()});
        else
            taken->activities.push_back(a);
    }
    return taken->batches >= taking->stop_after ? 1234 : KPT_OK;
}

void convert(void *ctx, const uint64_t *ticks, int64_t *ns, uint64_t count)
{
    auto *c = static_cast<Ctx *>(ctx);
    c->taken->converts++;
    if (!count) complain(c->taken, "convert was called with nothing");
    for (uint64_t i = 1; i < count; i++)
        if (ticks[i] < ticks[i - 1])
            complain(c->taken, "convert was given ticks that go backwards");
    if (c->taking->convert) return c->taking->convert(nullptr, ticks, ns, count);
    for (uint64_t i = 0; i < count; i++)
        ns[i] = static_cast<int64_t>(ticks[i]);
}

} // namespace

Taken take_from(const Deliver &deliver, const Taking &taking)
{
    Taken taken;
    Ctx ctx{&taken, &taking};
    kpti_error error{};
    kpt_delivery delivery;
    KPT_INIT(&delivery);
    delivery.order = taking.order;
    delivery.flags = taking.flags;
    delivery.batch_size = taking.batch_size;
    delivery.end_ns = taking.end_ns;
    delivery.convert = convert;
    delivery.convert_ctx = &ctx;
    delivery.sink = sink;
    delivery.sink_ctx = &ctx;
    taken.status = deliver(&delivery, &error);
    taken.error = error.text;
    return taken;
}

Taken take(Recording &recording, Taking taking)
{
    const kpti_env plain{};
    uint64_t repairs = 0;
    const Deliver deliver = [&](const kpt_delivery *delivery, kpti_error *error) {
        kpti_delivery_job job{};
        job.env = taking.env ? taking.env : &plain;
        job.recording = recording.view();
        job.delivery = delivery;
        job.repairs = 99; // is out only
        const kpt_status status = kpti_deliver(&job, error);
        repairs = job.repairs;
        return status;
    };
    Taken taken = take_from(deliver, taking);
    taken.repairs = repairs;
    return taken;
}

Taken take_checked(Recording &recording, Taking taking)
{
    Taken taken = take(recording, taking);
    EXPECT_EQ(KPT_OK, taken.status) << taken.error;
    for (const std::string &line : broken_rules(taken, taking))
        ADD_FAILURE() << line;
    return taken;
}

const kpt_activity &Taken::only(uint32_t function) const
{
    static const kpt_activity none{};
    const kpt_activity *found = &none;
    int count = 0;
    for (const kpt_activity &a : activities)
        if (a.name == function && a.phase != KPT_PHASE_BEGIN) {
            found = &a;
            count++;
        }
    EXPECT_EQ(1, count) << "activities of function " << function;
    return *found;
}

std::string Taken::text() const
{
    std::ostringstream out;
    for (const kpt_activity &a : activities) {
        out << (&a == &activities.front() ? "" : " ");
        if (a.kind == KPT_KIND_GC)
            out << "gc" << a.value0;
        else
            out << "f" << a.name;
        out << (a.phase == KPT_PHASE_BEGIN ? "<" : a.phase == KPT_PHASE_END ? ">" : "");
        out << "[" << a.start_ns << "-" << a.end_ns << "]";
        if (a.flags & KPT_ACTIVITY_BEGAN_BEFORE) out << "B";
        if (a.flags & KPT_ACTIVITY_ENDED_BY_STOP) out << "S";
        if (a.flags & KPT_ACTIVITY_CLAMPED) out << "C";
        if (a.flags & KPT_ACTIVITY_RECOVERED) out << "R";
        if (a.flags & KPT_ACTIVITY_WATCHED) out << "W";
        if (a.flags & KPT_ACTIVITY_CONTINUED) out << "+";
    }
    return out.str();
}

std::string Taken::points_text() const
{
    std::ostringstream out;
    for (const Point &p : points) {
        out << (&p == &points.front() ? "" : " ") << p.activity.value0 << "@" << p.activity.end_ns;
        for (const kpt_activity &a : activities)
            if (a.id == p.activity.parent_id && a.phase != KPT_PHASE_BEGIN)
                out << " in f" << a.name;
    }
    return out.str();
}

namespace
{

using Lines = std::vector<std::string>;

void expect(Lines *lines, bool holds, const char *rule, const kpt_activity &a)
{
    if (holds || lines->size() > 10) return;
    std::ostringstream out;
    out << rule << ": activity " << a.id << " in " << a.parent_id << " at depth " << a.depth
        << " of thread " << a.thread << ", " << a.start_ns << " to " << a.end_ns << ", phase "
        << a.phase << ", flags " << a.flags;
    lines->push_back(out.str());
}

int64_t moment(const kpt_activity &a)
{
    return a.phase == KPT_PHASE_END ? a.end_ns : a.start_ns;
}

bool continued(const kpt_activity &a)
{
    return a.flags & KPT_ACTIVITY_CONTINUED;
}

bool contains(const kpt_activity &outer, const kpt_activity &inner)
{
    return inner.start_ns >= outer.start_ns && inner.end_ns <= outer.end_ns;
}

void check_nesting(Lines *lines, const Taken &taken, const Taking &taking)
{
    using Parts = std::vector<const kpt_activity *>;
    std::vector<Parts> by_id(taken.activities.size() + 1);
    size_t count = 0;
    for (const kpt_activity &a : taken.activities) {
        if (a.phase == KPT_PHASE_BEGIN) continue;
        const bool known = a.id >= 1 && a.id < by_id.size();
        expect(lines, known && by_id[a.id].empty() != continued(a), "ids are unique, from 1", a);
        if (!known) continue;
        Parts &parts = by_id[a.id];
        count += parts.empty();
        if (!parts.empty()) {
            const kpt_activity &before = *parts.back();
            expect(lines, taking.flags & KPT_DELIVER_PARTS, "parts only if asked for", a);
            expect(lines, before.end_ns <= a.start_ns && before.flags & KPT_ACTIVITY_CLAMPED,
                   "a part after the cut", a);
            expect(lines,
                   before.parent_id == a.parent_id && before.depth == a.depth &&
                       before.name == a.name && before.line == a.line,
                   "a part of the same call", a);
        }
        parts.push_back(&a);
    }
    for (const kpt_activity &a : taken.activities) {
        expect(lines, a.id <= count, "ids have no gaps", a);
        expect(lines, a.start_ns <= a.end_ns, "no end before the start", a);
        expect(lines, !taking.end_ns || a.end_ns <= taking.end_ns, "no end after the delivery", a);
        expect(lines, a.kind >= KPT_KIND_PYTHON && a.kind <= KPT_KIND_GC, "a known kind", a);
        expect(lines, a.flags < KPT_ACTIVITY_CONTINUED * 2, "known flags", a);
        expect(lines, a.parent_id || a.depth == 0, "a root has depth 0", a);
        if (!a.parent_id) continue;
        const Parts parents = a.parent_id < by_id.size() ? by_id[a.parent_id] : Parts();
        expect(lines, !parents.empty() && parents[0]->thread == a.thread,
               "the parent is of the thread", a);
        if (parents.empty()) continue;
        expect(lines, a.depth == parents[0]->depth + 1, "one deeper than its parent", a);
        expect(lines,
               std::any_of(parents.begin(), parents.end(),
                           [&](const kpt_activity *parent) { return contains(*parent, a); }),
               "within its parent", a);
    }
}

// Checks that points lie in open calls.
void check_points(Lines *lines, const Taken &taken, const Taking &taking)
{
    for (const Taken::Point &p : taken.points) {
        const kpt_activity *parent = nullptr;
        for (size_t i = p.after; i < taken.activities.size(); i++) {
            const kpt_activity &a = taken.activities[i];
            if (a.phase == KPT_PHASE_BEGIN || a.thread != p.activity.thread) continue;
            if (a.id == p.activity.parent_id) parent = &a;
        }
        const kpt_activity &a = p.activity;
        expect(lines, !a.id && a.value0 && a.phase == KPT_PHASE_COMPLETE, "no call", a);
        expect(lines, a.start_ns == a.end_ns, "no time", a);
        expect(lines, !taking.end_ns || a.end_ns <= taking.end_ns, "no end after the delivery", a);
        expect(lines, !a.parent_id || parent, "in what is open", a);
        expect(lines, !parent || (parent->start_ns <= a.start_ns && a.end_ns <= parent->end_ns),
               "within its parent", a);
    }
}

void check_thread_order(Lines *lines, const Taken &taken, const Taking &taking)
{
    std::map<uint32_t, uint64_t> lowest;
    std::vector<bool> ended(taken.activities.size() + 1);
    uint64_t calls = 0;
    uint64_t done = 0; // calls of threads that are complete
    const kpt_activity *before = nullptr;
    for (const kpt_activity &a : taken.activities) {
        expect(lines, a.phase == KPT_PHASE_COMPLETE, "no phase", a);
        if (!before || before->thread != a.thread) {
            expect(lines, !lowest.count(a.thread), "a thread in one part", a);
            done = calls;
            lowest[a.thread] = done;
        }
        calls += !continued(a);
        expect(lines, a.id > done, "threads' ids do not overlap", a);
        expect(lines, a.parent_id < a.id, "ids in pre-order", a);
        expect(lines,
               a.parent_id >= ended.size() || !ended[a.parent_id] ||
                   taking.flags & KPT_DELIVER_PARTS,
               "children first", a);
        expect(lines, !before || before->thread != a.thread || before->end_ns <= a.end_ns,
               "by their end", a);
        if (a.id < ended.size()) ended[a.id] = true;
        before = &a;
    }
}

void check_time_order(Lines *lines, const Taken &taken)
{
    std::map<uint32_t, std::vector<const kpt_activity *>> open;
    const kpt_activity *before = nullptr;
    uint64_t begun = 0;
    for (const kpt_activity &a : taken.activities) {
        auto &stack = open[a.thread];
        expect(lines, !before || moment(*before) <= moment(a), "by time", a);
        before = &a;
        if (a.phase == KPT_PHASE_BEGIN) {
            if (!continued(a)) expect(lines, a.id == ++begun, "ids as they begin", a);
            expect(lines, a.parent_id == (stack.empty() ? 0 : stack.back()->id), "in the open", a);
            expect(lines, a.end_ns == a.start_ns, "a begin knows its start only", a);
            expect(lines,
                   !(a.flags & ~uint32_t{KPT_ACTIVITY_BEGAN_BEFORE | KPT_ACTIVITY_WATCHED |
                                         KPT_ACTIVITY_CONTINUED}),
                   "a begin knows its flags only", a);
            stack.push_back(&a);
            continue;
        }
        expect(lines, a.phase == KPT_PHASE_END, "begin or end", a);
        if (stack.empty() || stack.back()->id != a.id) {
            expect(lines, false, "the innermost ends", a);
            continue;
        }
        expect(lines, stack.back()->start_ns == a.start_ns && stack.back()->name == a.name,
               "as it began", a);
        stack.pop_back();
    }
    for (const auto &[thread, stack] : open)
        for (const kpt_activity *a : stack)
            expect(lines, false, "every begin has an end", *a);
}

void check_start_order(Lines *lines, const Taken &taken)
{
    const kpt_activity *before = nullptr;
    uint64_t calls = 0;
    for (const kpt_activity &a : taken.activities) {
        expect(lines, a.phase == KPT_PHASE_COMPLETE, "no phase", a);
        if (!continued(a)) expect(lines, a.id == ++calls, "ids 1, 2, 3", a);
        expect(lines, a.parent_id < a.id, "parents first", a);
        expect(lines, !before || before->start_ns <= a.start_ns, "by start", a);
        before = &a;
    }
}

} // namespace

std::vector<std::string> broken_rules(const Taken &taken, const Taking &taking)
{
    Lines lines = taken.wrong;
    if (taking.batch_size && taken.largest > taking.batch_size)
        lines.emplace_back("a batch is too large");
    check_nesting(&lines, taken, taking);
    check_points(&lines, taken, taking);
    if (taking.order == KPT_ORDER_THREAD) check_thread_order(&lines, taken, taking);
    if (taking.order == KPT_ORDER_TIME) check_time_order(&lines, taken);
    if (taking.order == KPT_ORDER_START) check_start_order(&lines, taken);
    return lines;
}
