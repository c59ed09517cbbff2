/* name_interner.h: stores each string once, as long as the recording lives. Names of kernels are demangled. */
#ifndef KPTI_GPU_TRACER_RECORDS_NAME_INTERNER_H
#define KPTI_GPU_TRACER_RECORDS_NAME_INTERNER_H

#include <pthread.h>

#include "core/base/hash_table.h"
#include "gpu_tracer/records/budget.h"

typedef struct kpti_gpu_names {
    pthread_mutex_t lock; /* innermost lock: only memory is allocated under it */
    kpti_gpu_budget *budget;
    kpti_hash_table texts; /* of kpti_gpu_text * */
} kpti_gpu_names;

void kpti_names_init(kpti_gpu_names *names, kpti_gpu_budget *budget);
/* Returns the stored form of TEXT, demangled if DEMANGLE is set (for kernels). Returns an empty string if
 * TEXT is NULL or there is no memory. Any thread. */
kpt_str kpti_names_keep(kpti_gpu_names *names, const char *text, int demangle);
void kpti_names_free(kpti_gpu_names *names);

#endif
