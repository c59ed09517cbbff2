/* trace_file.h: the execution trace that is made of a journal, as JSON, compressed where its name ends in
 * .gz. It is put in its place when it is whole. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_TRACE_FILE_H
#define KPTI_EXECUTION_TRACE_OUTPUT_TRACE_FILE_H

#include "abi/impl/kpti_impl.h"
#include "core/base/allocator.h"
#include "execution_trace/journal/journal.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_trace_file {
    kpti_heap heap;
    const char *path;
    const char *journal_path; /* where the rest will be, of a file that is just begun; else NULL */
    int is_growing; /* the journal is mapped, and grows; the file has no name until close */
} kpti_trace_file;

/* Of the journal that FD is open for, as it is now. KPT_OK, KPT_E_IO, KPT_E_MEMORY, KPT_E_INVALID. */
kpt_status kpti_trace_file_write(const kpti_trace_file *file, int fd, kpti_error *error);
/* Of a JOURNAL that has no descriptor any more: of what is mapped. MISSING receives the bytes that are not. */
kpt_status kpti_trace_file_from_mapped(const kpti_trace_file *file, const kpti_et_journal *journal,
                                       uint64_t *missing, kpti_error *error);
/* Of a journal that somebody left behind. */
kpt_status kpti_trace_file_recover(const kpti_trace_file *file, const char *journal,
                                   kpti_error *error);
/* Of a journal in memory. */
kpt_status kpti_trace_file_from(const kpti_trace_file *file, const void *journal, uint64_t size,
                                kpti_error *error);

/* Whether PATH is, or would be, a file that can be replaced. */
int kpti_trace_file_is_regular(const char *path);

#ifdef __cplusplus
}
#endif
#endif
