/* event_sums.h: adds up the rows of a view, in the order and with the rounding of torch's Python: each time of a row,
 * and the averages of rows with the same key. No Python, no GIL. */
#ifndef KPTI_TORCH_EVENT_SUMS_H
#define KPTI_TORCH_EVENT_SUMS_H

#include "hosts/torch/exporter/events/event_view.h"

/* Microseconds, as Python has them: 0 is an int until a float is added. */
typedef struct kpti_time {
    double us;
    int is_float;
} kpti_time;

typedef struct kpti_row_times {
    kpti_time cpu;
    kpti_time self_cpu;
    kpti_time device;
    kpti_time self_device;
    int64_t self_cpu_bytes;
    int64_t self_device_bytes;
} kpti_row_times;

/* The sums of the rows with one key. */
typedef struct kpti_average {
    uint32_t row; /* the first one; of the total, the last one */
    uint32_t stack_size;
    uint64_t count;
    kpti_row_times times;
    int64_t cpu_bytes;
    int64_t device_bytes;
    uint64_t flops;
} kpti_average;

/* How rows are grouped, besides by name, device and whether they are annotations. */
typedef struct kpti_grouping {
    const uint32_t *shapes; /* by inputs: a number for each text of shapes; NULL: not by shapes */
    uint32_t stack_size;    /* 0: not by stack */
    int has_calls;          /* Python calls have groups, too */
} kpti_grouping;

typedef struct kpti_sums {
    const kpti_view *view;
    kpti_row_times *times; /* by row */
    uint64_t *flops;       /* by row; NULL: none */
    kpti_average *averages;
    uint32_t capacity;
    uint32_t count;
} kpti_sums;

/* Fills SUMS, which is zeroed except for view, with the times of each row. The caller frees it in any case. */
kpt_status kpti_sums_make(kpti_sums *sums, int with_flops);
void kpti_sums_free(kpti_sums *sums);

/* Adds an average for each group, in the order of their first rows. */
kpt_status kpti_sums_group(kpti_sums *sums, const kpti_grouping *grouping);
/* Adds one for all rows. */
kpt_status kpti_sums_total(kpti_sums *sums);
/* Returns what Python's sum() of the rows' own CPU times is. */
kpti_time kpti_sums_self_cpu(const kpti_sums *sums);

/* Returns STACK, or the innermost of its callers whose name is not left out of stacks; 0: there is none. */
uint32_t kpti_view_frame(const kpti_view *view, uint32_t stack);

#endif
