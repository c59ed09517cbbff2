/* op_encoder.h: encodes a host's operator as a record. It trusts the host's data only as far as the ABI
 * guarantees it, and omits fields that are absent. */
#ifndef KPTI_EXECUTION_TRACE_RECORD_OP_ENCODER_H
#define KPTI_EXECUTION_TRACE_RECORD_OP_ENCODER_H

#include "execution_trace/record/thread_journal.h"

/* Which data of integral inputs to record. */
typedef struct kpti_et_wish {
    int ranges;
    int data;
} kpti_et_wish;

/* Appends the values and attributes of OP to the record. */
void kpti_et_encode(kpti_et_cursor *c, const kpt_op *op, kpti_et_wish wish);

/* Returns how many of COUNT values or attributes the record holds. */
static inline uint32_t kpti_et_encoded(uint64_t count)
{
    return count < KPTI_ET_MAX_VALUES ? (uint32_t)count : (uint32_t)KPTI_ET_MAX_VALUES;
}

#endif
