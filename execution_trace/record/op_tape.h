/* op_tape.h: the stream of a thread as a tape of the host's (kpt_tape.h): what is all right at once is written there;
 * what is not, as a chunk that is full or a run that the stream does not know, goes the way of begin_op. */
#ifndef KPTI_EXECUTION_TRACE_RECORD_OP_TAPE_H
#define KPTI_EXECUTION_TRACE_RECORD_OP_TAPE_H

#include "abi/kpt_tape.h"

/* Of tapes that are the first field of a kpti_et_stream. */
extern const kpt_tape_ops kpti_et_tape_ops;

#endif
