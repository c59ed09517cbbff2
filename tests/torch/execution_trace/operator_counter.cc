// operator_counter.cc: counts the operators that torch begins while it is on, on all threads.
#include <ATen/record_function.h>

#include <atomic>

namespace
{

std::atomic<uint64_t> begun{0};

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction &)
{
    begun.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
}

at::CallbackHandle handle = 0;

} // namespace

extern "C" __attribute__((visibility("default"))) void counter_begin()
{
    begun = 0;
    handle = at::addGlobalCallback(at::RecordFunctionCallback(begin));
}

extern "C" __attribute__((visibility("default"))) uint64_t counter_end()
{
    at::removeCallback(handle);
    return begun;
}
