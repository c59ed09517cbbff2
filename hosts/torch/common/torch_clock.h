// torch_clock.h: torch's own conversion of ticks to Unix time, kept as long as a recording. torch's conversion
// function refers to objects that are freed with the session. But it is a linear function, rounded down, so a
// few thousand of its values determine it. The copy agrees with torch's to the nanosecond: at equal ticks,
// which coarse counters have, an operator and the call around it must not cross.
#ifndef KPTI_HOSTS_TORCH_COMMON_TORCH_CLOCK_H
#define KPTI_HOSTS_TORCH_COMMON_TORCH_CLOCK_H

#include <c10/util/ApproximateClock.h>

#include <cstdint>
#include <functional>

namespace kpytrace
{

using TimeConverter = std::function<c10::time_t(c10::approx_time_t)>;

class Clock
{
  public:
    Clock() = default;

    // Converts like CONVERTER for ticks between BEGIN and END.
    Clock(const TimeConverter &converter, uint64_t begin, uint64_t end);

    int64_t ns(uint64_t ticks) const
    {
        __int128 since = static_cast<int64_t>(ticks - begin_);
        return base_ns_ + static_cast<int64_t>((since * slope_ + offset_) >> SHIFT);
    }

  private:
    static constexpr int SHIFT = 52; // 2^52 ticks of a microsecond each are still in range

    uint64_t begin_ = 0;
    int64_t base_ns_ = 0;
    int64_t slope_ = 0;  // ns per tick, in units of 2^-SHIFT
    int64_t offset_ = 0; // ns, in the same units, from 0 to 1
};

} // namespace kpytrace
#endif
