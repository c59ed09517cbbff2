/* op_tape.h: the stream of a thread as a tape that the host writes to (kpt_tape.h). The tape handles the
 * common case. A record that needs a new chunk, or belongs to a run for which the stream is not set up yet,
 * takes the path of begin_op. */
#ifndef KPTI_EXECUTION_TRACE_RECORD_OP_TAPE_H
#define KPTI_EXECUTION_TRACE_RECORD_OP_TAPE_H

#include "abi/kpt_tape.h"

/* For tapes that are the first field of a kpti_et_stream. */
extern const kpt_tape_ops kpti_et_tape_ops;

#endif
