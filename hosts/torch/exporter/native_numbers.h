/* native_numbers.h: the numbers that torch gives to what a profile has: Python calls from 1, and operators and
 * annotations together from 1, each by its begin. Garbage collections have none. A delivery numbers all calls together,
 * so this translates its ids. Memory grows with the depth of the stacks. */
#ifndef KPTI_TORCH_NATIVE_NUMBERS_H
#define KPTI_TORCH_NATIVE_NUMBERS_H

#include "abi/kpt_activity.h"
#include "core/base/allocator.h"

/* Zeroed at first, except for heap. */
typedef struct kpti_native_numbers {
    kpti_heap heap;
    struct kpti_native_track *tracks; /* by thread */
    uint32_t track_capacity;
    uint64_t calls;
    uint64_t operators; /* and annotations */
} kpti_native_numbers;

void kpti_native_numbers_free(kpti_native_numbers *numbers);

static inline int kpti_is_python(const kpt_activity *a)
{
    return a->kind == KPT_KIND_PYTHON || a->kind == KPT_KIND_C;
}

/* Numbers A, the next activity of a delivery in KPT_ORDER_START. For a Python call, sets its id and the id of the Python
 * call around it; for an operator or a range, its id. A collection gets the id 0. Returns KPT_OK, KPT_E_MEMORY or
 * KPT_E_LIMIT. */
kpt_status kpti_native_number(kpti_native_numbers *numbers, kpt_activity *a);

#endif
