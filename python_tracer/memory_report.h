/* memory_report.h: blocks that a host tells of, in the log beside Python's own. */
#ifndef KPTI_MEMORY_REPORT_H
#define KPTI_MEMORY_REPORT_H

#include "abi/kpt_memory.h"
#include "python_tracer/memory_log.h"

/* Notes it where LOG is the one that records. Any thread; no GIL. */
void kpti_memory_report(kpti_memory_log *log, const kpt_memory_report *report);

#endif
