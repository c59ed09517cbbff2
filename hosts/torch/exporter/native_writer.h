/* native_writer.h: the format of native_trace.h as a sink of a delivery in KPT_ORDER_START with ranges. Only
 * native_trace.c uses it. */
#ifndef KPTI_TORCH_NATIVE_WRITER_H
#define KPTI_TORCH_NATIVE_WRITER_H

#include "hosts/torch/exporter/kernel_stacks.h"
#include "hosts/torch/exporter/native_profile.h"
#include "writers/format/format.h"
#include "writers/operators/engine_nodes.h"

extern const kpti_format kpti_format_native;

/* What was found before the delivery. */
typedef struct kpti_native_found {
    const kpti_engine_nodes *nodes;
    const kpti_kernel_stacks *stacks;
} kpti_native_found;

/* Writes the head. WRITER is a new one of the format. Returns KPT_OK, KPT_E_MEMORY or KPT_E_LIMIT. */
kpt_status kpti_native_writer_begin(kpti_writer *writer, const kpti_native_profile *profile,
                                    const kpti_native_found *found);

#endif
