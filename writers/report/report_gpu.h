/* report_gpu.h: what GPUs did, in the report: a section for the calls of CUDA, by thread, and one for each
 * device, with its streams as tracks and how long it was idle in its name. Only the report's writer uses this. */
#ifndef KPTI_WRITERS_REPORT_REPORT_GPU_H
#define KPTI_WRITERS_REPORT_REPORT_GPU_H

#include "writers/report/report_state.h"

/* Behind the trace's own section. KPT_OK, KPT_E_MEMORY or KPT_E_LIMIT. */
kpt_status kpti_report_gpu(kpti_report *w);

#endif
