/* report.h: the format report, one HTML page that displays a trace. */
#ifndef KPTI_WRITERS_REPORT_REPORT_H
#define KPTI_WRITERS_REPORT_REPORT_H

#include "writers/format/writer_options.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const kpti_format kpti_format_report;

#ifdef __cplusplus
}
#endif
#endif
