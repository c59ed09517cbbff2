/* trace_writer.h: an execution trace in the making, of as much of a journal as there is. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_TRACE_WRITER_H
#define KPTI_EXECUTION_TRACE_OUTPUT_TRACE_WRITER_H

#include "execution_trace/output/node_builder.h"
#include "execution_trace/output/trace_file.h"

typedef struct kpti_et_writer {
    const kpti_trace_file *file;
    kpti_et_reader reader;
    kpti_out_file out;
    kpti_et_resources resources;
    kpti_et_tree tree;
    uint64_t taken; /* records */
} kpti_et_writer;

/* Begins FILE of the journal that BYTES are; both are borrowed. As kpti_trace_file_from; needs a close after KPT_OK
 * only. */
kpt_status kpti_et_writer_open(kpti_et_writer **writer, const kpti_trace_file *file,
                               const void *bytes, uint64_t size, kpti_error *error);
/* Writes what the reader has up to LAST_NS, or until IS_ENOUGH, which is atomic. 0: it failed, as the close tells, or
 * takes room that the journal may want. With IS_ENOUGH NULL nothing is recorded any more, and all room is the
 * file's. */
int kpti_et_writer_take(kpti_et_writer *writer, int64_t last_ns, const int *is_enough);
/* With KEEP the file is completed and put in its place, without it or after a failure nothing is left. */
kpt_status kpti_et_writer_close(kpti_et_writer *writer, int keep, kpti_error *error);

#endif
