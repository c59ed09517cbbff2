/* resource_folder.h: the folder beside a trace for data that is not in the trace: X_resources for X.json
 * and X.json.gz. It is created with its first file. */
#ifndef KPTI_EXECUTION_TRACE_OUTPUT_RESOURCE_FOLDER_H
#define KPTI_EXECUTION_TRACE_OUTPUT_RESOURCE_FOLDER_H

#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_et_resources {
    char folder[PATH_MAX];
    int error; /* the first errno */
} kpti_et_resources;

void kpti_et_resources_of(kpti_et_resources *r, const char *path);
/* Writes DATA to the file nid_<NODE>_tid_<TENSOR>.dat. */
void kpti_et_resources_put(kpti_et_resources *r, uint64_t node, uint32_t tensor, const void *data,
                           size_t size);

#ifdef __cplusplus
}
#endif
#endif
