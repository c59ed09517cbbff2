/* code_filter.h: a copy of the host's filters, which decide whether a function is recorded. */
#ifndef KPTI_PYTHON_TRACER_STATE_CODE_FILTER_H
#define KPTI_PYTHON_TRACER_STATE_CODE_FILTER_H

#include "abi/impl/kpti_impl.h"

typedef struct kpti_filters {
    kpt_filter *items; /* followed by their patterns, each NUL-terminated */
    uint32_t count;
    int any_include;
    int any_module;
    size_t bytes;
} kpti_filters;

/* Copies the filters of ARGS. Returns KPT_OK, or KPT_E_MEMORY with OUT empty. */
kpt_status kpti_filters_copy(const kpti_env *env, const kpt_tracer_args *args, kpti_filters *out);
void kpti_filters_free(const kpti_env *env, kpti_filters *filters);

/* Whether code of FILE and MODULE is recorded. The last filter that matches decides. Code that no filter
 * matches is recorded unless one of the filters is an include. Pure. */
int kpti_filters_allow(const kpti_filters *filters, kpt_str file, kpt_str module);

#endif
