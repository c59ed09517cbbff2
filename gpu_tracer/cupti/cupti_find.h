/* cupti_find.h: finds the CUPTI library. */
#ifndef KPTI_GPU_TRACER_CUPTI_CUPTI_FIND_H
#define KPTI_GPU_TRACER_CUPTI_CUPTI_FIND_H

#include <stddef.h>

/* Loads the library. Returns its handle and writes its path to PATH, or returns NULL and writes the
 * searched places to TEXT. */
void *kpti_cupti_find(char *path, size_t size, char *text, size_t text_size);

/* Returns the library's path without loading it, for NVTX, which needs it early, or NULL if it is not known
 * yet. */
const char *kpti_cupti_likely_path(char *capacity, size_t size);

#endif
