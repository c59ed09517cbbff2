// on_demand.cc: asks Kineto for a trace as its daemon would.
#include <libkineto.h>

extern "C" __attribute__((visibility("default"))) void kpt_request(const char *config)
{
    libkineto::api().activityProfiler().scheduleTrace(config);
}
