/* operator_table.h: a sink that adds up the operators and ranges of a delivery, by name, and on demand by Python function,
 * thread and step.
 *
 *   open ──> batch, batch, … (as a delivery's sink, in KPT_ORDER_TIME with ranges) ──> rows ──> free
 *
 * Time grows with the number of calls, memory as in operator_walk.h. One thread at a time; no Python, no GIL. */
#ifndef KPTI_WRITERS_OPERATORS_OPERATOR_TABLE_H
#define KPTI_WRITERS_OPERATORS_OPERATOR_TABLE_H

#include "abi/kpt_activity.h"
#include "core/base/allocator.h"
#include "writers/annotations/step_intervals.h"
#include "writers/gpu/gpu_log.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_operator_table kpti_operator_table;

/* Where the operators of a row were called. */
typedef enum kpti_operator_caller {
    KPTI_CALLED_NOWHERE = 0,     /* rows are by name only, or no Python function was open */
    KPTI_CALLED_BY_FUNCTION = 1, /* by the Python function of the row */
    KPTI_CALLED_BY_AUTOGRAD =
        2, /* for a forward operator that the Python function of the row called */
    KPTI_CALLED_BY_AUTOGRAD_FOR_UNKNOWN = 3 /* the forward operator was not recorded, or is lost */
} kpti_operator_caller;

typedef struct kpti_operator_row {
    uint32_t name; /* index of its kpt_name */
    uint32_t kind; /* KPT_KIND_OPERATOR or KPT_KIND_RANGE_BEGIN */
    kpti_operator_caller caller;
    uint32_t function; /* index of the kpt_name of the Python function, if there is one */
    uint32_t thread;   /* index of a kpt_thread, with KPTI_OPERATORS_BY_THREAD */
    uint32_t step;     /* index of its step + 1; 0: no step */
    uint64_t calls;
    uint64_t own_ns;   /* without the operators and ranges inside */
    uint64_t total_ns; /* of nested operators of the same name only the outermost counts */
    uint64_t min_ns;
    uint64_t max_ns;
    uint64_t gpu_own_ns;   /* of what was launched in it, without the operators and ranges inside */
    uint64_t gpu_total_ns; /* as total_ns */
} kpti_operator_row;

enum {
    KPTI_OPERATORS_BY_FUNCTION = 1 << 0, /* a row for each operator and Python function */
    KPTI_OPERATORS_BY_THREAD = 1 << 1
};

/* Returns KPT_OK and sets *OUT, which the caller frees, or returns KPT_E_MEMORY. */
kpt_status kpti_operator_table_open(const kpti_heap *heap, uint32_t flags,
                                    kpti_operator_table **out);
void kpti_operator_table_free(kpti_operator_table *table);

/* Before the first batch: makes a row for each operator and step, the one in which it began. STEPS, as in step_intervals.h, must
 * live until free. */
void kpti_operator_table_by_step(kpti_operator_table *table, const kpti_profile_step *steps,
                                 uint32_t count);

/* Before the first batch: takes the launches of LOG, of the same recording. Returns as kpti_operator_walk_add_gpu does. */
kpt_status kpti_operator_table_add_gpu(kpti_operator_table *table, const kpti_gpu_log *log);

/* A kpt_batch_fn. TABLE is a kpti_operator_table. Returns as kpti_operator_walk_batch does. */
kpt_status kpti_operator_table_batch(void *table, const kpt_batch *batch);

/* After the last batch: returns *COUNT rows in the order in which they were met. The table owns them. */
const kpti_operator_row *kpti_operator_table_rows(const kpti_operator_table *table,
                                                  uint32_t *count);

/* Returns the name INDEX for display, which the table owns; empty if it was not delivered. */
kpt_str kpti_operator_table_name(const kpti_operator_table *table, uint32_t index);
/* The same for the thread INDEX. */
kpt_str kpti_operator_table_thread(const kpti_operator_table *table, uint32_t index);

#ifdef __cplusplus
}
#endif
#endif
