#include "hosts/torch/session/thread_state.h"

#include <c10/util/Exception.h>
#include <pthread.h>

#include <utility>

namespace kpytrace
{

using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;
using torch::profiler::impl::ProfilerStateBase;

namespace
{

std::atomic<uint32_t> forks_to_here{0};
std::atomic<int> closed_states{0}; // those that live, because a thread has one in its slot

uint32_t count_forks()
{
    static const int hooked = pthread_atfork(nullptr, nullptr, [] { forks_to_here.fetch_add(1); });
    (void)hooked;
    return forks_to_here;
}

ThreadState *state_of_thread()
{
    return dynamic_cast<ThreadState *>(ThreadState::last());
}

// Returns whether a state was removed. If torch has put something else over it, it stays.
bool pop_state()
{
    try {
        return ProfilerStateBase::pop(false) != nullptr;
    } catch (const c10::Error &) {
        return false;
    }
}

} // namespace

ThreadState::ThreadState(bool wants_memory, bool wants_inputs)
    : ProfilerStateBase(ProfilerConfig(ProfilerState::NVTX, wants_inputs, wants_memory)),
      wants_memory_(wants_memory), forks_(count_forks())
{
}

ThreadState::~ThreadState()
{
    if (!is_open_) closed_states--;
}

bool ThreadState::is_running() const
{
    return is_open_ && forks_ == forks_to_here;
}

void ThreadState::close()
{
    if (is_open_.exchange(false)) closed_states++;
}

bool ThreadState::is_below_last(const ThreadState *state)
{
    const ThreadState *last = state_of_thread();
    if (!last) return true;
    while (last && last != state)
        last = last->outer_.get();
    return last;
}

bool ThreadState::push(const std::shared_ptr<ThreadState> &state)
{
    (void)free_thread(false);
    ThreadState *last = state_of_thread();
    if (ThreadState::last() && !last) return false;
    if (last) state->outer_ = last->shared_from_this();
    std::shared_ptr<ProfilerStateBase> pushed = state;
    ProfilerStateBase::push(std::move(pushed));
    return true;
}

void ThreadState::remove(const ThreadState *state)
{
    if (state_of_thread() == state) (void)pop_state();
    (void)free_thread(false);
}

bool ThreadState::free_thread(bool marks)
{
    const ThreadState *last = state_of_thread();
    while (last && (!last->is_running() || (marks && !last->wants_memory_)) && pop_state())
        last = state_of_thread();
    return closed_states > 0;
}

} // namespace kpytrace
