/* host_blocks.h: blocks that a host tells of, in the log beside Python's own. */
#ifndef KPTI_PYTHON_TRACER_ALLOCATORS_HOST_BLOCKS_H
#define KPTI_PYTHON_TRACER_ALLOCATORS_HOST_BLOCKS_H

#include "abi/kpt_memory.h"
#include "core/memory_log/allocation_log.h"

/* Notes it where LOG is the one that records. Any thread; no GIL. */
void kpti_memory_report(kpti_memory_log *log, const kpt_memory_report *report);

#endif
