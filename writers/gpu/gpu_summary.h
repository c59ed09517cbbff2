/* gpu_summary.h: sums of GPU activities, for tables: by kernel, by the Python line that launched it, and the
 * idle time of each device. */
#ifndef KPTI_WRITERS_GPU_GPU_SUMMARY_H
#define KPTI_WRITERS_GPU_GPU_SUMMARY_H

#include "writers/gpu/gpu_launches.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Work with one name, or launched by one line; name is then the number of its node. Work of autograd that no Python line
 * launched is in the row of its forward function. */
typedef struct kpti_gpu_row {
    uint32_t name;
    uint32_t is_backward;
    kpt_str forward; /* with is_backward: the function, or empty if it is not known */
    uint32_t kind;   /* of the first piece of work */
    uint64_t count;
    uint64_t total_ns;
    uint64_t max_ns;
} kpti_gpu_row;

/* The device was idle from start_ns to end_ns. */
typedef struct kpti_gpu_gap {
    int64_t start_ns;
    int64_t end_ns;
    uint32_t text;        /* name of the work after the gap */
    uint32_t stack;       /* stack that launched it */
    uint32_t is_backward; /* autograd launched it without Python */
    kpt_str forward;      /* as in kpti_gpu_row */
} kpti_gpu_gap;

enum { KPTI_GPU_GAPS = 16 };

typedef struct kpti_gpu_busy {
    uint32_t device;
    uint64_t count;
    uint64_t kernels;
    int64_t first_ns; /* begin of its first work */
    int64_t last_ns;
    uint64_t busy_ns; /* at least one piece of work ran; the rest is idle time */
    uint32_t gap_count;
    kpti_gpu_gap gaps[KPTI_GPU_GAPS]; /* the largest gaps, largest first */
} kpti_gpu_busy;

/* Zeroed at first, except for heap. */
typedef struct kpti_gpu_report {
    kpti_heap heap;
    kpti_gpu_row *names; /* most time first */
    uint32_t name_capacity;
    uint32_t name_count;
    kpti_gpu_row *lines; /* most time first; name 0: line not known */
    uint32_t line_capacity;
    uint32_t line_count;
    kpti_gpu_busy *devices; /* by index */
    uint32_t device_capacity;
    uint32_t device_count;
} kpti_gpu_report;

/* LAUNCHES are those of a walk of the same recording, or NULL. Returns KPT_OK, KPT_E_MEMORY or KPT_E_LIMIT. The
 * caller must call kpti_gpu_report_free in any case. Takes 40 bytes of memory for each event of a device. */
kpt_status kpti_gpu_report_make(kpti_gpu_report *report, const kpti_gpu_log *log,
                                kpti_gpu_launches *launches);
void kpti_gpu_report_free(kpti_gpu_report *report);

#ifdef __cplusplus
}
#endif
#endif
