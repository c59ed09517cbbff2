/* op_encoder.h: a host's operator as a record. All that the host passes is believed only as far as the ABI makes
 * sure of it: what is not there is left out. */
#ifndef KPTI_EXECUTION_TRACE_RECORD_OP_ENCODER_H
#define KPTI_EXECUTION_TRACE_RECORD_OP_ENCODER_H

#include "execution_trace/record/thread_journal.h"

/* What of integral inputs is wanted. */
typedef struct kpti_et_wish {
    int ranges;
    int data;
} kpti_et_wish;

/* Values and attributes of OP behind what the record has already. */
void kpti_et_encode(kpti_et_cursor *c, const kpt_op *op, kpti_et_wish wish);

/* How many of them there are in the record. */
static inline uint32_t kpti_et_encoded(uint64_t count)
{
    return count < KPTI_ET_MOST_VALUES ? (uint32_t)count : (uint32_t)KPTI_ET_MOST_VALUES;
}

#endif
