// session_recording.h: one recording: the tracer of one profiler session, and the shim's data on its threads
// and objects. Shared by torch's side, while the session lasts, and the exporter's, until the file is written.
#ifndef KPTI_HOSTS_TORCH_PROFILER_SESSION_RECORDING_H
#define KPTI_HOSTS_TORCH_PROFILER_SESSION_RECORDING_H

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hosts/torch/common/plugin_client.h"
#include "hosts/torch/common/torch_clock.h"
#include "hosts/torch/profiler/exporter_view.h"
#include "hosts/torch/profiler/open_calls.h"
#include "hosts/torch/profiler/thread_numbers.h"
#include "hosts/torch/profiler/watched_objects.h"

namespace kpytrace
{

// Which part of the recording is passed to torch at the session's end.
enum class Mode { ALL = 0, FULL = 1, FAST = 2 };

// The calls that torch receives.
enum class Wanted {
    ALL,
    MARKED,                // calls with an operator or an annotation in them
    MARKED_AND_COLLECTIONS // these, and garbage collections
};

// The arguments of install. Strings and code objects are owned.
struct Settings {
    std::string plugin;
    Mode mode = Mode::FULL;
    bool late_threads = true;
    uint32_t tool_id = 0;
    std::vector<std::string> prefixes;
    struct Watched {
        Watch what;
        PyCodeObject *code;
    };
    std::vector<Watched> watched;
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
        return *settings_;
    }
    torch::profiler::impl::RecordQueue *queue()
    {
        return queue_;
    }
    PluginClient &client()
    {
        return client_;
    }
    Threads &threads()
    {
        return threads_;
    }
    Objects &objects()
    {
        return objects_;
    }
    const OpenCalls &open_calls() const
    {
        return open_calls_;
    }

    // These begin, continue and end the recording. Annotations and operators are marked meanwhile.
    bool stop();
    bool restart();

    // Returns a file's name without the prefix that torch removes.
    std::string_view trimmed(std::string_view path) const;

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
    explicit Recorder(std::shared_ptr<const Settings> settings);
    bool make();
    void begin_marks_if_it_records();
    static uint64_t attach(void *ctx, uint64_t os_tid);
    static uint64_t watched(void *ctx, uint64_t watch, void *object, uint64_t call_id);
    static void log(void *ctx, uint32_t level, kpt_str text);
    static void convert(void *ctx, const uint64_t *ticks, int64_t *ns, uint64_t count);

    std::shared_ptr<const Settings> settings_;
    torch::profiler::impl::RecordQueue *queue_ = nullptr;
    Threads threads_;
    Objects objects_;
    OpenCalls open_calls_;
    uint64_t begin_ticks_ = 0;
    std::optional<Clock> clock_;
    int64_t end_ns_ = 0;
    std::optional<Wanted> owed_;
    bool handed_late_ = false;
    bool may_be_refused_ = false; // log discards the message of a make that may fail
    std::vector<kpt_str> prefixes_;
    kpti_torch_recording lent_{};
    PluginClient client_; // last: its tracer calls back into the other members
};

} // namespace kpytrace
#endif
