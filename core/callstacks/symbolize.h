/* symbolize.h: converts tracebacks to lists of frames and describes each distinct frame once. Needs
 * no Python, because the tables contain everything. */
#ifndef KPTI_CORE_CALLSTACKS_SYMBOLIZE_H
#define KPTI_CORE_CALLSTACKS_SYMBOLIZE_H

#include "abi/impl/kpti_impl.h"

/* The host's callback for generated code, the sink, and the env whose allocator is used. */
typedef struct kpti_symbolizer {
    const kpti_env *env;
    kpt_generated_fn generated; /* may be NULL */
    void *generated_ctx;
    kpt_symbols_fn sink;
    void *sink_ctx;
} kpti_symbolizer;

kpt_status kpti_symbolize(const kpti_symbolizer *s, const kpt_traceback *tracebacks, uint64_t count,
                          kpti_error *error);
/* As kpti_symbolize, for single locations. Returns KPT_E_INVALID for a number that is not a Python
 * location. */
kpt_status kpti_symbolize_locations(const kpti_symbolizer *s, const uint32_t *locations,
                                    uint64_t count, kpti_error *error);

#endif
