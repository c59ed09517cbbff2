#include "hosts/torch/profiler/event_tree.h"

#include <algorithm>
#include <limits>

namespace kpytrace
{

using torch::profiler::impl::EventType;
using torch::profiler::impl::ExtraFields;
using torch::profiler::impl::Result;

namespace
{

constexpr int64_t never = std::numeric_limits<int64_t>::max();

// Kineto's own events stay under the operator that launched them, wherever that is.
bool stays_where_it_is(const Result &event)
{
    return event.tag() == EventType::Kineto && !event.parent_.expired();
}

// The time after which no event is inside EVENT. For an event that did not end, torch has the smallest time.
int64_t end_of(const Result &event)
{
    int64_t end = event.endTimeNS();
    return end == std::numeric_limits<int64_t>::min() ? never : end;
}

// Returns the thread of the forward operator that a backward operator belongs to, or 0.
uint64_t forward_thread(const Result &event)
{
    const auto *op = std::get_if<ExtraFields<EventType::TorchOp>>(&event.extra_fields_);
    return op ? op->forward_tid_ : 0;
}

// Returns all events below ROOTS, parents first, and removes the parent of each event that is placed by time.
Results take_apart(const Results &roots)
{
    Results all = roots;
    for (size_t i = 0; i < all.size(); i++) {
        std::shared_ptr<Result> event = all[i]; // a copy: the list grows
        all.insert(all.end(), event->children_.begin(), event->children_.end());
        std::erase_if(event->children_,
                      [](const auto &child) { return !stays_where_it_is(*child); });
    }
    for (const auto &event : all)
        if (!stays_where_it_is(*event)) event->parent_.reset();
    return all;
}

// The open events of a thread, outermost first.
class Stack
{
  public:
    Result *top_at(int64_t time)
    {
        while (!open_.empty() && open_.back().ends < time)
            open_.pop_back();
        return open_.empty() ? nullptr : open_.back().event;
    }

    // An event inside another ends no later than the outer event, whatever its own end.
    void push(Result *event, int64_t end)
    {
        open_.push_back({event, open_.empty() ? end : std::min(end, open_.back().ends)});
    }

  private:
    struct Open {
        Result *event;
        int64_t ends;
    };
    std::vector<Open> open_;
};

class Placement
{
  public:
    explicit Placement(Results &roots) : roots_(roots) {}

    void add(const std::shared_ptr<Result> &event)
    {
        Stack &own = stacks_[event->start_tid_];
        Result *parent = own.top_at(event->start_time_ns_);
        Result *lent = parent ? nullptr : forward_parent(*event);
        if (lent) parent = lent;
        if (parent) {
            event->parent_ = parent->weak_from_this();
            parent->children_.push_back(event);
        } else {
            roots_.push_back(event);
        }
        event->finished_ = true;
        int64_t end = end_of(*event);
        if (end <= event->start_time_ns_) return; // no event is inside a point
        if (lent) own.push(lent, never);          // as in torch: later events belong to it too
        own.push(event.get(), end);
    }

  private:
    Result *forward_parent(const Result &event)
    {
        auto stack = stacks_.find(forward_thread(event));
        return stack == stacks_.end() ? nullptr : stack->second.top_at(event.start_time_ns_);
    }

    Results &roots_;
    std::unordered_map<uint64_t, Stack> stacks_;
};

} // namespace

Results add_to_tree(Results &roots, const Results &added)
{
    Results all = take_apart(roots);
    all.insert(all.end(), added.begin(), added.end());
    std::stable_sort(all.begin(), all.end(), [](const auto &a, const auto &b) {
        return a->start_time_ns_ < b->start_time_ns_;
    });
    roots.clear();
    Placement placement(roots);
    for (const auto &event : all)
        if (!stays_where_it_is(*event)) placement.add(event);
    return all;
}

} // namespace kpytrace
