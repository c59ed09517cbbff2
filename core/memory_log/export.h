/* export.h: writes a log of allocations to a file. Needs no GIL; the log may record meanwhile. */
#ifndef KPTI_CORE_MEMORY_LOG_EXPORT_H
#define KPTI_CORE_MEMORY_LOG_EXPORT_H

#include "abi/impl/kpti_impl.h"
#include "core/memory_log/log_chunks.h"
#include "core/recording/clock.h"

typedef struct kpti_memory_source {
    const kpti_env *env;
    kpti_memory_log *log;
    kpti_clock_point points[2]; /* when the log began, and when it ended or now */
} kpti_memory_source;

/* Writes PATH in the format that its suffix selects: .pickle, .tables.json, .json or .pftrace. A
 * failed export leaves no file. */
kpt_status kpti_memory_export(const kpti_memory_source *source, const char *path,
                              kpti_error *error);

#endif
