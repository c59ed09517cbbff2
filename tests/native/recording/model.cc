#include "tests/native/recording/model.h"

#include <algorithm>
#include <tuple>

namespace
{

constexpr size_t none = SIZE_MAX;

struct Call {
    kpt_activity a{};
    size_t parent = none; // among the thread's calls
    bool at_last_stop = false;
    uint64_t begin_step = 0; // positions among the thread's begins and ends
    uint64_t end_step = 0;
    bool delivered = true;
    bool is_operator = false; // its values are those of an operator
};

class ThreadModel
{
  public:
    ThreadModel(const kpti_recording *recording, uint32_t thread, const Taking &taking)
        : recording_(recording), thread_(thread), taking_(taking)
    {
    }

    std::vector<Call> calls;
    uint64_t repairs = 0;

    void replay()
    {
        const kpti_chunk *before = nullptr;
        for (const kpti_chunk *c = recording_->tracks[thread_].chunks; c; c = c->next) {
            if (c->run >= recording_->run_count) {
                repairs++;
                continue;
            }
            if (before && before->run != c->run) stop(false);
            const bool first = !before || before->run != c->run;
            if (first) start(c->run);
            const bool gap =
                first ? c->sequence != 0 : c->sequence != before->sequence + 1 || c->dropped_before;
            if (gap) close_down_to(0, last_, KPT_ACTIVITY_RECOVERED);
            replay_chunk(*c, first, gap);
            before = c;
        }
        if (before) stop(before->run == recording_->run_count - 1);
    }

  private:
    void start(uint32_t run)
    {
        last_ = std::max(last_, recording_->runs[run].start_ticks);
        most_ = std::max(last_, recording_->runs[run].stop_ticks);
    }

    void stop(bool last)
    {
        for (size_t call : stack_)
            calls[call].at_last_stop = last;
        close_down_to(0, most_, KPT_ACTIVITY_ENDED_BY_STOP);
    }

    int64_t ns(uint64_t ticks) const
    {
        int64_t out = static_cast<int64_t>(ticks);
        if (taking_.convert) taking_.convert(nullptr, &ticks, &out, 1);
        return out;
    }

    uint64_t clamp(uint64_t ticks)
    {
        return std::min(std::max(ticks, last_), most_);
    }

    void begin(uint64_t ticks, uint32_t function, uint32_t kind, uint32_t flags)
    {
        Call call;
        call.a.start_ns = ns(ticks);
        call.a.thread = thread_;
        call.a.name = function;
        call.a.kind = static_cast<uint16_t>(kind);
        call.a.flags = flags;
        call.a.depth = static_cast<uint32_t>(stack_.size());
        call.parent = stack_.empty() ? none : stack_.back();
        call.begin_step = steps_++;
        stack_.push_back(calls.size());
        calls.push_back(call);
        last_ = std::max(last_, ticks);
    }

    static uint32_t usual_line(const kpt_activity &a)
    {
        return a.flags & KPT_ACTIVITY_BEGAN_BEFORE || a.name == C_FUNCTION ? 0 : 10 * a.name;
    }

    void begin_function(uint64_t ticks, uint32_t number, uint32_t flags)
    {
        const uint32_t function = number < recording_->function_count ? number : 0;
        begin(ticks, function, function == C_FUNCTION ? KPT_KIND_C : KPT_KIND_PYTHON, flags);
        calls.back().a.line = usual_line(calls.back().a);
        numbers_.push_back(number);
    }

    // Ends the innermost calls until DEPTH are left; FLAGS is the reason, or 0.
    void close_down_to(size_t depth, uint64_t ticks, uint32_t flags)
    {
        last_ = std::max(last_, ticks);
        while (stack_.size() > depth) {
            Call &call = calls[stack_.back()];
            call.a.end_ns = ns(ticks);
            call.a.flags |= flags;
            call.end_step = steps_++;
            if (flags == KPT_ACTIVITY_RECOVERED) repairs++;
            stack_.pop_back();
            numbers_.pop_back();
        }
    }

    static constexpr uint32_t gc_number = UINT32_MAX;

    // Returns the depth of the innermost call with this number, or none.
    size_t find(uint32_t number) const
    {
        for (size_t i = numbers_.size(); i-- > 0;)
            if (numbers_[i] == number) return i;
        return none;
    }

    size_t end(uint64_t ticks, uint32_t number)
    {
        const size_t depth = find(number);
        if (depth == none) {
            repairs++;
            last_ = ticks;
            return none;
        }
        const size_t call = stack_[depth];
        close_down_to(depth + 1, ticks, KPT_ACTIVITY_RECOVERED);
        close_down_to(depth, ticks, 0);
        return call;
    }

    void begin_gc(uint64_t ticks, uint32_t generation)
    {
        if (find(gc_number) != none) close_down_to(find(gc_number), ticks, KPT_ACTIVITY_RECOVERED);
        begin(ticks, recording_->function_count, KPT_KIND_GC, 0);
        calls.back().a.value0 = generation;
        numbers_.push_back(gc_number);
    }

    // Details precede the report of a call, so they apply only to a call that has just begun.
    void detail(uint32_t kind, uint32_t number, uint32_t low, uint64_t second, bool expected)
    {
        if (!expected) {
            repairs++;
            return;
        }
        Call &call = calls.back();
        kpt_activity &a = call.a;
        if (kind == KPTI_EVENT_LINE) {
            a.line = number ? number : usual_line(a);
            return;
        }
        if (kind == KPTI_EVENT_CALLER) {
            if (!call.is_operator) a.value2 = number;
            return;
        }
        if (kind == KPTI_EVENT_OPERATOR) {
            call.is_operator = true;
            a.value0 = low;
            a.value1 = number >> 8;
            a.value2 = 0;
            return;
        }
        if (kind == KPTI_EVENT_WIDE) {
            if (call.is_operator && number == KPTI_WIDE_SEQUENCE) a.value0 = second + 1;
            if (call.is_operator && number == KPTI_WIDE_FORWARD) a.value1 = second;
            if (call.is_operator && number == KPTI_WIDE_RECORD) a.value2 = second;
            return;
        }
        if (kind == KPTI_EVENT_TEXT || kind == KPTI_EVENT_INPUTS) return;
        a.flags |= KPT_ACTIVITY_WATCHED;
        a.value0 = second;
        a.value1 = number;
        for (size_t i = 0; i + 1 < stack_.size(); i++)
            calls[stack_[i]].a.flags |= KPT_ACTIVITY_MARKED;
    }

    void replay_chunk(const kpti_chunk &c, bool first, bool gap)
    {
        uint64_t high = c.base_ticks >> 32 << 32;
        bool opens = true;        // only OPENs and their details so far
        bool details_fit = false; // the event before was the beginning of a call
        bool skipping = false;    // after an OPEN without new information
        bool in_span = false;     // after the beginning of a span, whose details no call has
        if (gap) last_ = clamp(c.base_ticks);
        const uint64_t opened = last_;
        for (uint32_t i = 0; i < c.count; i++) {
            const uint32_t kind = kpti_event_kind(c.events[i]);
            const uint32_t number = kpti_event_number(c.events[i]);
            const uint64_t ticks = high | static_cast<uint32_t>(c.events[i]);
            const bool is_line = kind == KPTI_EVENT_LINE || kind == KPTI_EVENT_CALLER;
            const bool is_detail = is_line || kind == KPTI_EVENT_WATCH ||
                                   (kind >= KPTI_EVENT_TEXT && kind <= KPTI_EVENT_INPUTS);
            uint64_t second = 0;
            if (kpti_event_is_long(kind)) {
                if (++i == c.count) {
                    if (!skipping || !is_detail) repairs++;
                    if (kind == KPTI_EVENT_GC_END) { // that has a time all the same
                        if (ticks < last_) repairs++;
                        last_ = clamp(ticks);
                    }
                    break;
                }
                second = c.events[i];
            }
            if (kind == KPTI_EVENT_EPOCH) high = second >> 32 << 32;
            const bool is_open =
                opens && (kind == KPTI_EVENT_OPEN || (is_detail && (skipping || details_fit)));
            if ((is_line || kind == KPTI_EVENT_OPEN) && !is_open) last_ = clamp(ticks);
            if (is_detail) {
                if (!skipping && !in_span)
                    detail(kind, number, static_cast<uint32_t>(ticks), second, details_fit);
                opens = opens && (skipping || details_fit);
                continue;
            }
            if (kind == KPTI_EVENT_OPEN && opens) {
                skipping = !first && !gap;
                details_fit = !skipping;
                if (!skipping) begin_function(opened, number, KPT_ACTIVITY_BEGAN_BEFORE);
                continue;
            }
            opens = skipping = details_fit = in_span = false;
            const bool timed = kind == KPTI_EVENT_ENTER || kind == KPTI_EVENT_EXIT ||
                               (kind >= KPTI_EVENT_GC_BEGIN && kind <= KPTI_EVENT_SPAN_END);
            if (timed && ticks < last_) repairs++;
            const uint64_t now = timed ? clamp(ticks) : last_;
            switch (kind) {
            case KPTI_EVENT_ENTER:
                begin_function(now, number, 0);
                details_fit = true;
                break;
            case KPTI_EVENT_EXIT:
                end(now, number);
                break;
            case KPTI_EVENT_GC_BEGIN:
                begin_gc(now, number);
                break;
            case KPTI_EVENT_GC_END:
                if (const size_t gc = end(now, gc_number); gc != none) {
                    calls[gc].a.value1 = static_cast<uint32_t>(second);
                    calls[gc].a.value2 = second >> 32;
                }
                break;
            case KPTI_EVENT_MARK:
            case KPTI_EVENT_SPAN_BEGIN: // no track here has spans, so they cut nothing
                in_span = kind == KPTI_EVENT_SPAN_BEGIN;
                for (const size_t call : stack_)
                    calls[call].a.flags |= KPT_ACTIVITY_MARKED;
                last_ = now;
                break;
            case KPTI_EVENT_SPAN_END:
                last_ = now;
                break;
            case KPTI_EVENT_EPOCH:
                break;
            default:
                repairs++;
            }
        }
    }

    const kpti_recording *recording_;
    uint32_t thread_;
    const Taking &taking_;
    std::vector<size_t> stack_;
    std::vector<uint32_t> numbers_; // the numbers in their exits
    uint64_t last_ = 0;
    uint64_t most_ = UINT64_MAX;
    uint64_t steps_ = 0;
};

// The delivery's end and the least duration.
void choose(std::vector<Call> &calls, const Taking &taking, uint64_t min_duration_ns)
{
    for (Call &call : calls) {
        kpt_activity &a = call.a;
        if (taking.end_ns) {
            if (a.start_ns > taking.end_ns) {
                call.delivered = false;
                continue;
            }
            if (call.at_last_stop) {
                a.end_ns = taking.end_ns;
            } else if (a.end_ns > taking.end_ns) {
                a.end_ns = taking.end_ns;
                a.flags |= KPT_ACTIVITY_CLAMPED;
            }
        }
        call.delivered = static_cast<uint64_t>(a.end_ns - a.start_ns) >= min_duration_ns;
    }
}

struct Step {
    int64_t when;
    uint32_t thread;
    uint64_t step;
    uint16_t phase;
    Call *call;
    bool operator<(const Step &other) const
    {
        return std::tie(when, thread, step) < std::tie(other.when, other.thread, other.step);
    }
};

void number(std::vector<std::vector<Call>> &threads, const std::vector<Call *> &in_order)
{
    uint64_t id = 0;
    for (Call *call : in_order)
        call->a.id = ++id;
    for (auto &calls : threads)
        for (Call &call : calls)
            call.a.parent_id = call.parent == none ? 0 : calls[call.parent].a.id;
}

void by_thread(std::vector<std::vector<Call>> &threads, Expected *out)
{
    std::vector<Call *> in_order;
    for (auto &calls : threads)
        for (Call &call : calls)
            if (call.delivered) in_order.push_back(&call);
    number(threads, in_order);
    std::stable_sort(in_order.begin(), in_order.end(), [](const Call *a, const Call *b) {
        return std::tie(a->a.thread, a->end_step) < std::tie(b->a.thread, b->end_step);
    });
    for (const Call *call : in_order)
        out->activities.push_back(call->a);
}

void by_time(std::vector<std::vector<Call>> &threads, bool complete, Expected *out)
{
    std::vector<Step> steps;
    std::vector<Call *> in_order;
    for (auto &calls : threads)
        for (Call &call : calls) {
            if (!call.delivered) continue;
            steps.push_back(
                {call.a.start_ns, call.a.thread, call.begin_step, KPT_PHASE_BEGIN, &call});
            if (!complete)
                steps.push_back(
                    {call.a.end_ns, call.a.thread, call.end_step, KPT_PHASE_END, &call});
        }
    std::sort(steps.begin(), steps.end());
    for (const Step &step : steps)
        if (step.phase == KPT_PHASE_BEGIN) in_order.push_back(step.call);
    number(threads, in_order);
    for (const Step &step : steps) {
        kpt_activity a = step.call->a;
        a.phase = complete ? uint16_t{KPT_PHASE_COMPLETE} : step.phase;
        if (a.phase == KPT_PHASE_BEGIN) {
            a.end_ns = a.start_ns;
            a.flags &= KPT_ACTIVITY_BEGAN_BEFORE | KPT_ACTIVITY_WATCHED;
            if (a.kind == KPT_KIND_GC) a.value1 = a.value2 = 0;
        }
        out->activities.push_back(a);
    }
}

} // namespace

Expected model(Recording &recording, const Taking &taking)
{
    const kpti_recording *view = recording.view();
    std::vector<std::vector<Call>> threads;
    Expected out;
    for (uint32_t t = 0; t < view->track_count; t++) {
        ThreadModel thread(view, t, taking);
        thread.replay();
        choose(thread.calls, taking, view->min_duration_ns);
        out.repairs += thread.repairs;
        threads.push_back(std::move(thread.calls));
    }
    if (taking.order == KPT_ORDER_THREAD)
        by_thread(threads, &out);
    else
        by_time(threads, taking.order == KPT_ORDER_START, &out);
    return out;
}
