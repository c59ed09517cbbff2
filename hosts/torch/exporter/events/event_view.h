/* event_view.h: the events of a table as torch's FunctionEvents have them: sorted, in a tree for each thread, with the
 * kernels and the memory of each, by the rules of torch/autograd/profiler.py and profiler_util.py. A row is a
 * FunctionEvent. Indices of rows are stored + 1, and 0 means none. No Python, no GIL. */
#ifndef KPTI_TORCH_EVENT_VIEW_H
#define KPTI_TORCH_EVENT_VIEW_H

#include "hosts/torch/exporter/events/event_table.h"

enum {                                 /* of a name */
       KPTI_NAME_HIDDEN = 1 << 0,      /* its events have no row */
       KPTI_NAME_NOT_IN_STACK = 1 << 1 /* the name is left out of stacks */
};

/* What torch's Python decides. */
typedef struct kpti_view_options {
    const uint32_t *keys; /* by name: a number for each key of averages; NULL: not needed */
    const uint8_t *flags; /* by name: KPTI_NAME_* */
    int64_t base_ns;      /* times are relative to it */
    int has_device;       /* the profile has a device, so that its times count */
    int sums_exactly;     /* Python's sum() compensates for rounding, since 3.12 */
} kpti_view_options;

typedef struct kpti_row {
    uint64_t id;
    uint32_t event;
    uint32_t thread; /* index of a thread, the first with its number */
    uint32_t parent;
    uint32_t first_child;
    uint32_t last_child;
    uint32_t child_count;
    uint32_t next; /* child of the same parent */
    uint32_t first_kernel;
    uint32_t last_kernel;
    uint32_t backward; /* the row of the node of autograd that it is in */
    uint32_t stack;
    int64_t cpu_bytes;
    int64_t device_bytes;
} kpti_row;

/* A kernel that a row launched. */
typedef struct kpti_row_kernel {
    uint32_t row;
    uint32_t next; /* index + 1 */
} kpti_row_kernel;

typedef struct kpti_view {
    const kpti_event_table *table;
    kpti_view_options options;
    kpti_row *rows;
    uint32_t capacity;
    uint32_t count;
    kpti_row_kernel *kernels;
    uint32_t kernel_capacity;
    uint32_t kernel_count;
} kpti_view;

/* Fills VIEW, which is zeroed except for table and options. The caller frees it in any case. */
kpt_status kpti_view_make(kpti_view *view);
void kpti_view_free(kpti_view *view);

/* Adds the tree to rows in their order. */
kpt_status kpti_view_add_tree(kpti_view *view);

static inline const kpti_event *kpti_view_event(const kpti_view *view, const kpti_row *row)
{
    return &view->table->events[row->event];
}

static inline int kpti_row_is_async(const kpti_view *view, const kpti_row *row)
{
    return kpti_view_event(view, row)->flags & KPTI_EVENT_ASYNC;
}

/* Microseconds, as torch computes them. */
static inline double kpti_view_us(const kpti_view *view, int64_t ns)
{
    return (double)(ns - view->options.base_ns) / 1000.0;
}

static inline double kpti_row_us(const kpti_view *view, const kpti_row *row)
{
    const kpti_event *const event = kpti_view_event(view, row);
    return kpti_view_us(view, event->end_ns) - kpti_view_us(view, event->start_ns);
}

#endif
