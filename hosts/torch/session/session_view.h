// session_view.h: how torch names the threads and the calls of one session: its numbers of threads, the modules and
// optimizers whose calls are watched, the lines of calls that were running at the start, and the prefixes that it
// removes from the names of files. Any host of the process may make the session's tracer, with the callbacks and the
// watched code objects of this view.
#ifndef KPTI_HOSTS_TORCH_SESSION_SESSION_VIEW_H
#define KPTI_HOSTS_TORCH_SESSION_SESSION_VIEW_H

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hosts/torch/session/exporter_view.h"
#include "hosts/torch/session/open_calls.h"
#include "hosts/torch/session/session_settings.h"
#include "hosts/torch/session/thread_numbers.h"
#include "hosts/torch/session/watched_objects.h"

namespace kpytrace
{

class SessionView
{
  public:
    // QUEUE is torch's, and may be null, otherwise it must outlive end_queue(). Without HAS_TREE, torch makes no tree of
    // the events, and modules have only names.
    SessionView(std::shared_ptr<const Settings> settings, torch::profiler::impl::RecordQueue *queue,
                bool has_tree);

    const Settings &settings() const
    {
        return *settings_;
    }
    torch::profiler::impl::RecordQueue *queue() const
    {
        return queue_;
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

    // Reads the threads and their stacks as they are when the session begins. The GIL is held.
    void see_present();

    // Returns the fields of the host's table that the session needs: its clock and the callbacks, which use this object.
    kpt_host callbacks();
    // Returns the arguments that name the watched code objects, which this object owns.
    kpt_tracer_args watches();

    // If QUIET, the plugin's messages are discarded.
    void set_quiet(bool quiet)
    {
        is_quiet_ = quiet;
    }

    // torch's queue is not used any more.
    void end_queue()
    {
        queue_ = nullptr;
    }

    // Returns a file's name without the prefix that torch removes.
    std::string_view trimmed(std::string_view path) const;

    // Returns the names and numbers for the exporter, which live as long as this object. The caller adds the recording.
    kpti_torch_recording lent();

  private:
    static uint64_t attach(void *ctx, uint64_t os_tid);
    static uint64_t watched(void *ctx, uint64_t watch, void *object, uint64_t call_id);
    static void log(void *ctx, uint32_t level, kpt_str text);

    std::shared_ptr<const Settings> settings_;
    torch::profiler::impl::RecordQueue *queue_;
    Threads threads_;
    Objects objects_;
    OpenCalls open_calls_;
    std::vector<kpt_str> prefixes_;
    std::vector<kpt_watch> watches_;
    bool is_quiet_ = false;
};

} // namespace kpytrace
#endif
