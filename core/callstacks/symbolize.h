/* symbolize.h: tracebacks made readable: stacks of numbers become lists of frames, each frame described
 * once. Needs no Python: the tables have it all. */
#ifndef KPTI_CORE_CALLSTACKS_SYMBOLIZE_H
#define KPTI_CORE_CALLSTACKS_SYMBOLIZE_H

#include "abi/impl/kpti_impl.h"

/* Who is asked what a line of generated code stands for, and whose memory is used. */
typedef struct kpti_symbolizer {
    const kpti_env *env;
    kpt_generated_fn generated; /* or NULL */
    void *generated_ctx;
    kpt_symbols_fn sink;
    void *sink_ctx;
} kpti_symbolizer;

kpt_status kpti_symbolize(const kpti_symbolizer *s, const kpt_traceback *tracebacks, uint64_t count,
                          kpti_error *error);
/* The same of single places. KPT_E_INVALID for a number that is none of Python's places. */
kpt_status kpti_symbolize_places(const kpti_symbolizer *s, const uint32_t *places, uint64_t count,
                                 kpti_error *error);

#endif
