/* memory_aggregate.h: adds a memory recording up while it runs: live bytes and totals by stack are kept, and no history. Its
 * memory grows with the distinct stacks and with the live blocks, and with nothing else. The records are those
 * of memory_records.h, in order.
 *
 * Any thread may call. A write holds the lock that a delivery of the recording waits for. */
#ifndef KPTI_WRITERS_MEMORY_MEMORY_AGGREGATE_H
#define KPTI_WRITERS_MEMORY_MEMORY_AGGREGATE_H

#include <stdint.h>

#include "abi/kpt_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_memory_aggregate kpti_memory_aggregate;

/* Returns NULL if there is no memory. */
kpti_memory_aggregate *kpti_memory_aggregate_make(void);
void kpti_memory_aggregate_free(kpti_memory_aggregate *aggregate);

/* Adds the entries of a record: those of a delivery when its state comes. Returns KPT_E_MEMORY where there is no memory for
 * another stack or block; what is before stays. */
kpt_status kpti_memory_aggregate_take(kpti_memory_aggregate *aggregate, const void *bytes,
                                      uint64_t size);

/* Writes what was added up so far to PATH, whose suffix is .tables.json or .html. Returns 0, EINVAL for another suffix, an errno
 * of the file, or ENOMEM. A failed call leaves no file. */
int kpti_memory_aggregate_write(kpti_memory_aggregate *aggregate, const char *path);

#ifdef __cplusplus
}
#endif
#endif
