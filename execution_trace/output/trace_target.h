/* trace_target.h: the file that an execution trace is written to. The caller owns it, and its strings,
 * until the trace is closed. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_TRACE_TARGET_H
#define KPTI_EXECUTION_TRACE_OUTPUT_TRACE_TARGET_H

#include "core/base/allocator.h"

typedef struct kpti_trace_file {
    kpti_heap heap;
    const char *path;
    const char
        *journal_path; /* if the file is only begun, the journal that has the records; else NULL */
    int is_growing;    /* the journal is mapped and still grows; the file has no name until close */
} kpti_trace_file;

#endif
