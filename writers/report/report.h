/* report.h: the report, one page of HTML that shows a trace. */
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
