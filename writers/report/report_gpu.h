/* report_gpu.h: GPU activities in the report: a section for the CUDA calls, by thread, and one for each device,
 * with its streams as tracks and its idle time in its name. Only the report's writer uses this. */
#ifndef KPTI_WRITERS_REPORT_REPORT_GPU_H
#define KPTI_WRITERS_REPORT_REPORT_GPU_H

#include "writers/report/report_state.h"

/* Writes these sections after the trace's own section. Returns KPT_OK, KPT_E_MEMORY or KPT_E_LIMIT. */
kpt_status kpti_report_gpu(kpti_report *w);

#endif
