/* perfetto_gpu.h: GPU activities in a Perfetto trace. Only the Perfetto writer uses this. */
#ifndef KPTI_WRITERS_PERFETTO_PERFETTO_GPU_H
#define KPTI_WRITERS_PERFETTO_PERFETTO_GPU_H

#include "writers/perfetto/perfetto_state.h"

/* Writes all GPU activities. Call it after all threads were delivered. */
kpt_status kpti_perfetto_gpu(kpti_perfetto *writer);

#endif
