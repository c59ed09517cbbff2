#include "python_tracer/state/tracer_state.h"

void kpti_tracer_calibrate(const kpti_tracer *tracer, kpti_clock_point *out)
{
    const kpt_host *host = &tracer->env->host;
    if (kpti_tracer_has_clock(tracer))
        kpti_clock_calibrate_with(out, host->now_ticks, host->ctx, 0);
    else
        kpti_clock_calibrate(out);
}
