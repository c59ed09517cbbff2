#include "hosts/torch/common/torch_clock.h"

#include <algorithm>

#include "hosts/torch/common/hash.h"

namespace kpytrace
{

// The number of samples. Each sample narrows the range of offsets with which all samples so far are rounded as
// torch rounded them.
static constexpr int SAMPLES = 4096;

Clock::Clock(const TimeConverter &converter, uint64_t begin, uint64_t end)
{
    auto at = [&](uint64_t ticks) {
        return static_cast<int64_t>(converter(static_cast<c10::approx_time_t>(ticks)));
    };
    begin_ = begin;
    base_ns_ = at(begin);
    slope_ = at(begin + (uint64_t{1} << SHIFT)) - base_ns_;
    int64_t lowest = 0;
    int64_t highest = (int64_t{1} << SHIFT) - 1;
    uint64_t step = HASH_FACTOR; // spreads the samples evenly
    uint64_t span = std::max<uint64_t>(end - begin, 1);
    for (uint64_t i = 1; i <= SAMPLES; i++) {
        uint64_t since =
            static_cast<uint64_t>((static_cast<unsigned __int128>(step * i) * span) >> 64);
        __int128 wanted = static_cast<__int128>(at(begin + since) - base_ns_) << SHIFT;
        __int128 without = static_cast<__int128>(since) * slope_;
        auto min = static_cast<int64_t>(wanted - without);
        lowest = std::max(lowest, min);
        highest = std::min(highest, min + ((int64_t{1} << SHIFT) - 1));
    }
    offset_ = lowest + (highest - lowest) / 2;
}

} // namespace kpytrace
