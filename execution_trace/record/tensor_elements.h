/* tensor_elements.h: reads a tensor's elements in their logical order, whatever the strides. */
#ifndef KPTI_EXECUTION_TRACE_RECORD_TENSOR_ELEMENTS_H
#define KPTI_EXECUTION_TRACE_RECORD_TENSOR_ELEMENTS_H

#include "abi/kpt_observer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns 1 if TENSOR has elements, they are integers, and they can be read now. */
int kpti_elements_are_integral(const kpt_tensor *tensor);
/* Returns how many bytes kpti_elements_copy writes. */
uint64_t kpti_elements_bytes(const kpt_tensor *tensor);
void kpti_elements_copy(const kpt_tensor *tensor, void *out);
/* RANGE receives the smallest and the greatest element; unsigned elements as the same bits. */
void kpti_elements_range(const kpt_tensor *tensor, uint64_t range[2]);

#ifdef __cplusplus
}
#endif
#endif
