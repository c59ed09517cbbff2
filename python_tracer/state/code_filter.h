/* code_filter.h: which code is recorded: a copy of the host's filters, and their verdict on a function. */
#ifndef KPTI_PYTHON_TRACER_STATE_CODE_FILTER_H
#define KPTI_PYTHON_TRACER_STATE_CODE_FILTER_H

#include "abi/impl/kpti_impl.h"

typedef struct kpti_filters {
    kpt_filter *items; /* with their patterns behind them, each NUL-terminated */
    uint32_t count;
    int any_include;
    int any_module;
    size_t bytes;
} kpti_filters;

/* Copies what ARGS has. KPT_E_MEMORY leaves OUT empty. */
kpt_status kpti_filters_copy(const kpti_env *env, const kpt_tracer_args *args, kpti_filters *out);
void kpti_filters_free(const kpti_env *env, kpti_filters *filters);

/* Whether code of FILE and MODULE is recorded: the last filter that matches decides; code that none
 * matches is, unless there is an include among them. Pure. */
int kpti_filters_allow(const kpti_filters *filters, kpt_str file, kpt_str module);

#endif
