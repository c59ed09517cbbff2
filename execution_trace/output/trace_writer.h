/* trace_writer.h: writes an execution trace step by step, from the part of a journal that exists so far. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_TRACE_WRITER_H
#define KPTI_EXECUTION_TRACE_OUTPUT_TRACE_WRITER_H

#include "abi/impl/kpti_impl.h"
#include "execution_trace/output/node_builder.h"
#include "execution_trace/output/trace_target.h"

typedef struct kpti_et_writer {
    const kpti_trace_file *file;
    kpti_et_reader reader;
    kpti_out_file out;
    kpti_et_resources resources;
    kpti_et_tree tree;
    uint64_t taken; /* records */
} kpti_et_writer;

/* Begins FILE for the journal in BYTES; both are borrowed until close. Returns KPT_OK, KPT_E_IO, KPT_E_MEMORY or
 * KPT_E_INVALID. Close the writer only after KPT_OK. */
kpt_status kpti_et_writer_open(kpti_et_writer **writer, const kpti_trace_file *file,
                               const void *bytes, uint64_t size, kpti_error *error);
/* Writes the records up to LAST_NS, or until *IS_ENOUGH is set. Returns 0 if it failed (close
 * returns the reason), or if the disk is so full that the journal needs the rest. IS_ENOUGH is NULL once
 * recording has ended: then the file may fill the disk. */
int kpti_et_writer_take(kpti_et_writer *writer, int64_t last_ns, const _Atomic int *is_enough);
/* With KEEP, completes the file and renames it to its path. Without KEEP, or after a failure, no file
 * remains. */
kpt_status kpti_et_writer_close(kpti_et_writer *writer, int keep, kpti_error *error);

#endif
