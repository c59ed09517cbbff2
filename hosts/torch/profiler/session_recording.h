// session_recording.h: one recording: the tracer of one profiler session, and the shim's data on its threads
// and objects. Shared by torch's side, while the session lasts, and the exporter's, until the file is written.
#ifndef KPTI_HOSTS_TORCH_PROFILER_SESSION_RECORDING_H
#define KPTI_HOSTS_TORCH_PROFILER_SESSION_RECORDING_H

#include <memory>
#include <optional>
#include <string>

#include "hosts/torch/common/plugin_client.h"
#include "hosts/torch/common/torch_clock.h"
#include "hosts/torch/session/session_view.h"

namespace kpytrace
{

// The calls that torch receives.
enum class Wanted {
    ALL,
    MARKED,                // calls with an operator or an annotation in them
    MARKED_AND_COLLECTIONS // these, and garbage collections
};

// Record INDEX of an array whose records are STRIDE bytes long.
template <class T> const T &record_at(const T *array, uint32_t stride, uint32_t index)
{
    return *reinterpret_cast<const T *>(reinterpret_cast<const char *>(array) +
                                        size_t{stride} * index);
}

// Returns the line that torch shows for a call. A module's code begins before its first line.
uint32_t start_line(const kpt_activity &activity, const kpt_name &name);

class Recorder
{
  public:
    // Begins to record, and acquires the GIL for it. QUEUE may be null, otherwise it must outlive end(). The
    // result is never null. If nothing can be recorded, error() has the reason.
    static std::shared_ptr<Recorder> start(std::shared_ptr<const Settings> settings,
                                           torch::profiler::impl::RecordQueue *queue);

    bool records() const
    {
        return client_.records();
    }
    const std::string &error() const
    {
        return client_.error();
    }
    const Settings &settings() const
    {
        return view_.settings();
    }
    torch::profiler::impl::RecordQueue *queue()
    {
        return view_.queue();
    }
    PluginClient &client()
    {
        return client_;
    }
    SessionView &view()
    {
        return view_;
    }

    // These begin, continue and end the recording. Annotations and operators are marked meanwhile.
    bool stop();
    bool restart();

    // Called when the session has ended, with the conversion of its clock and the end of its open calls. An
    // empty converter stands for the plugin's own.
    void set_times(const TimeConverter &converter, int64_t end_ns);

    // Returns a delivery with these times.
    kpt_delivery delivery(uint32_t order, uint32_t flags, kpt_batch_fn sink, void *sink_ctx);

    // Records that torch has received none of these calls yet. It may receive them once, as long as this object
    // lives.
    void owe(Wanted wanted);
    std::optional<Wanted> take_owed();
    bool handed_late() const
    {
        return handed_late_;
    }

    // torch no longer uses the recording. Its queue and Python are not accessed again.
    void end();

    const kpti_torch_recording *lent();

  private:
    Recorder(std::shared_ptr<const Settings> settings, torch::profiler::impl::RecordQueue *queue);
    bool make();
    void begin_marks_if_it_records();
    static void convert(void *ctx, const uint64_t *ticks, int64_t *ns, uint64_t count);

    SessionView view_;
    uint64_t begin_ticks_ = 0;
    std::optional<Clock> clock_;
    int64_t end_ns_ = 0;
    std::optional<Wanted> owed_;
    bool handed_late_ = false;
    kpti_torch_recording lent_{};
    PluginClient client_; // last: its tracer calls back into the other members
};

} // namespace kpytrace
#endif
