// allocators.cc: CPU allocators that a program may put in front of whichever torch has: one that hands on,
// and says how often it was asked, and one whose blocks have a context of their own.
#include <c10/core/CPUAllocator.h>

#include <atomic>

namespace
{

std::atomic<int> asked{0};

struct HandsOn : c10::Allocator {
    c10::DataPtr allocate(size_t size) override
    {
        asked++;
        return below->allocate(size);
    }
    c10::DeleterFnPtr raw_deleter() const override
    {
        return below->raw_deleter();
    }
    void copy_data(void *to, const void *from, std::size_t size) const override
    {
        below->copy_data(to, from, size);
    }
    c10::Allocator *below = nullptr;
};

struct Wraps final : HandsOn {
    c10::DataPtr allocate(size_t size) override
    {
        auto *block = new c10::DataPtr(below->allocate(size));
        return {block->get(), block,
                [](void *context) { delete static_cast<c10::DataPtr *>(context); },
                c10::Device(c10::DeviceType::CPU)};
    }
    c10::DeleterFnPtr raw_deleter() const override
    {
        return nullptr;
    }
};

HandsOn hands_on;
Wraps wraps;

} // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED void kpt_put(int which, int priority)
{
    HandsOn &chosen = which ? wraps : hands_on;
    chosen.below = c10::GetCPUAllocator();
    c10::SetCPUAllocator(&chosen, static_cast<uint8_t>(priority));
}

EXPORTED int kpt_asked()
{
    return asked;
}

EXPORTED int kpt_is_stock()
{
    return c10::GetCPUAllocator() == c10::GetDefaultCPUAllocator();
}

EXPORTED void kpt_stock()
{
    c10::SetCPUAllocator(c10::GetDefaultCPUAllocator(), 255);
}
