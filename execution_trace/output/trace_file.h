/* trace_file.h: writes the execution trace of a journal as JSON, compressed if its path ends in .gz. The file gets
 * its name when it is complete. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_TRACE_FILE_H
#define KPTI_EXECUTION_TRACE_OUTPUT_TRACE_FILE_H

#include "abi/impl/kpti_impl.h"
#include "execution_trace/journal/journal.h"
#include "execution_trace/output/trace_target.h"

#ifdef __cplusplus
extern "C" {
#endif

/* All four return KPT_OK, KPT_E_IO, KPT_E_MEMORY or KPT_E_INVALID. */
/* Writes the trace of the journal that is open as FD, as the journal is now. */
kpt_status kpti_trace_file_write(const kpti_trace_file *file, int fd, kpti_error *error);
/* Writes the trace of a JOURNAL whose descriptor is gone, from the part that is mapped. *MISSING receives
 * the number of bytes that are not mapped. */
kpt_status kpti_trace_file_from_mapped(const kpti_trace_file *file, const kpti_et_journal *journal,
                                       uint64_t *missing, kpti_error *error);
/* Writes the trace of a journal file that a process left behind. */
kpt_status kpti_trace_file_recover(const kpti_trace_file *file, const char *journal,
                                   kpti_error *error);
/* Writes the trace of a journal in memory. */
kpt_status kpti_trace_file_from(const kpti_trace_file *file, const void *journal, uint64_t size,
                                kpti_error *error);

/* Returns 1 if PATH is a file that can be replaced, or does not exist yet. */
int kpti_trace_file_is_regular(const char *path);

#ifdef __cplusplus
}
#endif
#endif
