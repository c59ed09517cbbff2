/* operator_api.h: the functions of a tracer by which a host records its operators. They run for every operator, so they
 * look a handle up without a lock, and leave no text if they fail. */
#ifndef KPTI_PLUGIN_API_OPERATOR_API_H
#define KPTI_PLUGIN_API_OPERATOR_API_H

#include "plugin/objects/handle.h"

/* The kind of a tracer's handle; tracer_api.c defines it. */
extern const kpti_handle_kind kpti_tracer_kind;

kpt_status kpti_api_name_operator(kpt_handle self, kpt_str name, uint32_t scope, uint32_t *out);
kpt_status kpti_api_begin_operator(kpt_handle self, const kpt_operator *op, uint64_t *token);
kpt_status kpti_api_end_operator(kpt_handle self, uint64_t token);

/* Returns the functions for tracers of IMPL: OPS, or a copy with the functions that IMPL has for operators. One
 * implementation at most has them, as a process has one backend. */
const kpt_tracer_ops *kpti_api_direct_ops(const kpti_tracer_impl *impl, const kpt_tracer_ops *ops);

#endif
