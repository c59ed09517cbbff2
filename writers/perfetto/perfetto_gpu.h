/* perfetto_gpu.h: GPU activity in a Perfetto trace. Only the Perfetto writer uses this. */
#ifndef KPTI_WRITERS_PERFETTO_PERFETTO_GPU_H
#define KPTI_WRITERS_PERFETTO_PERFETTO_GPU_H

#include "writers/perfetto/perfetto_state.h"

/* Called once all threads have come. */
kpt_status kpti_perfetto_gpu(kpti_perfetto *writer);

#endif
