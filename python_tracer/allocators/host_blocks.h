/* host_blocks.h: records blocks that a host reports, in the same log as Python's own. */
#ifndef KPTI_PYTHON_TRACER_ALLOCATORS_HOST_BLOCKS_H
#define KPTI_PYTHON_TRACER_ALLOCATORS_HOST_BLOCKS_H

#include "abi/kpt_memory.h"
#include "core/memory_log/allocation_log.h"

/* Records the report if LOG is the log that records. Any thread. Needs no GIL. */
void kpti_memory_report(kpti_memory_log *log, const kpt_memory_report *report);

#endif
