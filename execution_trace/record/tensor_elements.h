/* tensor_elements.h: a tensor's elements, wherever they lie: in their logical order, whatever the strides. */
#ifndef KPTI_EXECUTION_TRACE_RECORD_TENSOR_ELEMENTS_H
#define KPTI_EXECUTION_TRACE_RECORD_TENSOR_ELEMENTS_H

#include "abi/kpt_observer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether TENSOR's elements are integers that can be read now, and there are any. */
int kpti_elements_are_integral(const kpt_tensor *tensor);
/* How many bytes copy writes. */
uint64_t kpti_elements_bytes(const kpt_tensor *tensor);
void kpti_elements_copy(const kpt_tensor *tensor, void *out);
/* RANGE receives the least and the greatest; of unsigned ones, as the same bits. */
void kpti_elements_range(const kpt_tensor *tensor, uint64_t range[2]);

#ifdef __cplusplus
}
#endif
#endif
