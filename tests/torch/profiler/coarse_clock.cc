// coarse_clock.cc: preloaded, a clock that does not move: every tick that torch converts becomes the same
// nanosecond, and a straight line rounded down it is still.
#include <c10/util/ApproximateClock.h>
#include <dlfcn.h>

namespace
{

constexpr int64_t COARSE = 1000000000000; // 1,000 s are a nanosecond

using Converter = std::function<c10::time_t(c10::approx_time_t)>;

Converter real_converter(c10::ApproximateClockToUnixTimeConverter *self)
{
    using Make = Converter (*)(c10::ApproximateClockToUnixTimeConverter *);
    // Python opens torch for itself, so that it is not next to us.
    static void *c10 = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
    static auto make = reinterpret_cast<Make>(
        dlsym(c10, "_ZN3c1035ApproximateClockToUnixTimeConverter13makeConverterEv"));
    return make(self);
}

} // namespace

namespace c10
{

std::function<time_t(approx_time_t)> ApproximateClockToUnixTimeConverter::makeConverter()
{
    Converter real = real_converter(this);
    static const int64_t base = real(getApproximateTime()) - COARSE / 2; // now is in the middle
    return [real](approx_time_t ticks) { return base + (real(ticks) - base) / COARSE; };
}

} // namespace c10
