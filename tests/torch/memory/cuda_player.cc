// Plays a CUDA device to listeners of torch's CUDA allocator, on machines without one: it replaces the real
// allocator by one that knows the listeners, and reports what a test asks for.
#include <c10/cuda/CUDACachingAllocator.h>
#include <torch/headeronly/version.h>

#include <mutex>
#include <vector>

namespace allocator = c10::cuda::CUDACachingAllocator;
using c10::DeviceIndex;
using c10::MempoolId_t;

namespace
{

[[noreturn]] void none()
{
    TORCH_CHECK(false, "this is played");
}

class Player final : public allocator::CUDAAllocator
{
  public:
    bool is_initialised = false;
    bool refuses = false;
    std::mutex lock;
    std::vector<allocator::AllocatorTraceTracker> trackers;

    bool initialized() override
    {
        return is_initialised;
    }
    void attachAllocatorTraceTracker(allocator::AllocatorTraceTracker tracker) override
    {
        TORCH_CHECK(!refuses, "this allocator has nobody listen");
        trackers.push_back(std::move(tracker));
    }
    std::string name() override
    {
        return "player";
    }

    // clang-format off
    void *raw_alloc(size_t) override { none(); }
    void *raw_alloc_with_stream(size_t, cudaStream_t) override { none(); }
    void raw_delete(void *) override { none(); }
    void init(int) override { none(); }
    double getMemoryFraction(DeviceIndex) override { none(); }
    void setMemoryFraction(double, DeviceIndex) override { none(); }
    std::vector<allocator::StreamSegmentSize> getExpandableSegmentSizes(DeviceIndex) override { none(); }
    void enable(bool) override { none(); }
    bool isEnabled() const override { none(); }
    void cacheInfo(DeviceIndex, size_t *) override { none(); }
    void *getBaseAllocation(void *, size_t *) override { none(); }
    void recordStream(const c10::DataPtr &, c10::cuda::CUDAStream) override { none(); }
    allocator::SnapshotInfo snapshot(MempoolId_t, bool) override { none(); }
    void beginAllocateToPool(DeviceIndex, MempoolId_t, std::function<bool(cudaStream_t)>) override { none(); }
    void endAllocateToPool(DeviceIndex, MempoolId_t) override { none(); }
    void releasePool(DeviceIndex, MempoolId_t) override { none(); }
    allocator::ShareableHandle shareIpcHandle(void *) override { none(); }
    std::shared_ptr<void> getIpcDevPtr(std::string) override { none(); }
    void recordHistory(bool, allocator::CreateContextFn, size_t, allocator::RecordContext, bool,
                       const std::vector<std::string> &) override { none(); }
    void attachOutOfMemoryObserver(allocator::OutOfMemoryObserver) override { none(); }
#if TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= 12 /* 2.11 does not have it */
    void attachOomRejectionObserver(allocator::OomRejectionObserver) override { none(); }
#endif
    void enablePeerAccess(DeviceIndex, DeviceIndex) override { none(); }
    cudaError_t memcpyAsync(void *, int, const void *, int, size_t, cudaStream_t, bool) override { none(); }
    std::shared_ptr<allocator::AllocatorState> getCheckpointState(DeviceIndex, MempoolId_t) override { none(); }
    allocator::CheckpointDelta setCheckpointPoolState(
        DeviceIndex, std::shared_ptr<allocator::AllocatorState>) override { none(); }
    std::pair<size_t, size_t> getMemoryInfo(DeviceIndex) override { none(); }
    void emptyCache(MempoolId_t) override { none(); }
    c10::CachingDeviceAllocator::DeviceStats getDeviceStats(DeviceIndex) override { none(); }
    void resetAccumulatedStats(DeviceIndex) override { none(); }
    void resetPeakStats(DeviceIndex) override { none(); }
    c10::DataPtr allocate(size_t) override { none(); }
    void copy_data(void *, const void *, std::size_t) const override { none(); }
    // clang-format on
};

Player &player()
{
    static auto *forever = new Player;
    return *forever;
}

} // namespace

#define PLAYED extern "C" __attribute__((visibility("default")))

// Of CUDA's, which the allocator's class mentions.
extern "C" {
cudaError_t cudaMemGetInfo(size_t *, size_t *)
{
    none();
}
cudaError_t cudaGetLastError()
{
    none();
}
const char *cudaGetErrorString(cudaError_t)
{
    none();
}
}

PLAYED void player_begin(bool is_initialised, bool refuses)
{
    player().is_initialised = is_initialised;
    player().refuses = refuses;
    allocator::allocator.store(&player());
}

PLAYED size_t player_trackers()
{
    return player().trackers.size();
}

// As the real one does: with its lock held.
PLAYED void player_say(int action, int device, size_t address, size_t size, void *stream)
{
    const allocator::TraceEntry entry(static_cast<allocator::TraceEntry::Action>(action),
                                      static_cast<DeviceIndex>(device), address, size,
                                      static_cast<cudaStream_t>(stream), MempoolId_t{0, 0},
                                      c10::getApproximateTime());
    std::lock_guard<std::mutex> guard(player().lock);
    for (const auto &tracker : player().trackers)
        tracker(entry);
}
