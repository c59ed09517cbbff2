/* op_recorder.h: records the begin and the end of operators, and the Python stacks they refer to. Called for every
 * operator, on any thread. */
#ifndef KPTI_EXECUTION_TRACE_RECORD_OP_RECORDER_H
#define KPTI_EXECUTION_TRACE_RECORD_OP_RECORDER_H

#include "execution_trace/record/journal_recorder.h"

/* As begin_op and end_op of the ABI. */
kpt_status kpti_recorder_begin(kpti_recorder *r, const kpt_op *op, uint64_t *op_id);
kpt_status kpti_recorder_end(kpti_recorder *r, uint64_t op_id, const kpt_op *op, kpt_str error);

/* Writes STACK and the stacks below it, unless the journal has them: the sets of S hold those. Returns 0 if
 * there is no memory or no chunk. S is busy. */
int kpti_recorder_write_new_stack(kpti_recorder *r, kpti_et_stream *s, uint32_t stack, int64_t ns);
static inline int kpti_recorder_write_stack(kpti_recorder *r, kpti_et_stream *s, uint32_t stack,
                                            int64_t ns)
{
    return !stack || stack == s->last_stack || kpti_recorder_write_new_stack(r, s, stack, ns);
}

#endif
