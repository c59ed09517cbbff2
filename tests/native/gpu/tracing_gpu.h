/* tracing_gpu.h: the plugin opened as a host does, a tracer of GPUs, and what it handed out. */
#ifndef TRACING_GPU_H
#define TRACING_GPU_H

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/fixtures/mock_host/mock_host.h"

/* An event with its name kept. */
struct Event : kpt_gpu_event {
    std::string text;
};

/* Gatherers whose tracebacks are numbers that a test sets; they count what is still out. */
struct FakeTracebacks {
    FakeTracebacks();
    kpt_tracebacks object;
};
void set_python_line(uint32_t number); /* of this thread; 0: none */
int64_t tracebacks_out();
void at_release(std::function<void()> call); /* once, when the next one is released */

class TracingGpu : public ::testing::Test
{
  protected:
    TracingGpu();
    ~TracingGpu() override;
    /* With args as they are. */
    kpt_status make();
    kpt_status start();
    kpt_status stop();
    kpt_status collect();
    kpt_status destroy();
    std::string error();
    kpt_gpu_stats stats();
    std::vector<Event> of_kind(uint16_t kind) const;

    mock_host host;
    kpt_plugin_info info;
    kpt_gpu_maker maker;
    kpt_gpu_args args;
    kpt_gpu_tracer tracer;
    FakeTracebacks tracebacks;
    std::vector<Event> events;
    std::vector<std::string> devices;
    std::map<std::pair<uint32_t, uint32_t>, std::string> names;
    std::function<kpt_status()> in_sink;
    int sink_calls = 0;

  private:
    static kpt_status take(void *self, const kpt_gpu_batch *batch);
};

/* Unix time, as CLOCK_REALTIME has it. */
int64_t unix_now();

#endif
