// operator_counter.cc: counts the operators that torch begins while it is on, on all threads, together or by name.
#include <ATen/record_function.h>

#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <string>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace
{

std::atomic<uint64_t> begun{0};
std::mutex names_lock;
std::map<std::string, uint64_t> names; // guarded by names_lock

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction &)
{
    begun.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
}

std::unique_ptr<at::ObserverContext> begin_named(const at::RecordFunction &function)
{
    const std::lock_guard<std::mutex> guard(names_lock);
    names[function.name()]++;
    return begin(function);
}

at::CallbackHandle handle = 0;

} // namespace

EXPORTED void counter_begin()
{
    begun = 0;
    handle = at::addGlobalCallback(at::RecordFunctionCallback(begin));
}

EXPORTED void counter_begin_names()
{
    begun = 0;
    names.clear();
    handle = at::addGlobalCallback(at::RecordFunctionCallback(begin_named));
}

EXPORTED uint64_t counter_end()
{
    at::removeCallback(handle);
    return begun;
}

// Writes a line for each name: the count, a space, the name. After counter_end().
EXPORTED void counter_write_names(const char *path)
{
    const std::lock_guard<std::mutex> guard(names_lock);
    std::FILE *file = std::fopen(path, "w");
    for (const auto &[name, count] : names)
        std::fprintf(file, "%lu %s\n", static_cast<unsigned long>(count), name.c_str());
    std::fclose(file);
}
