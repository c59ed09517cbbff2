/* findings_rest.h: what an analysis is made of beside a delivery: the tracer's counters, the log of the GPUs, the notes. */
#ifndef KPTI_WRITERS_FINDINGS_FINDINGS_REST_H
#define KPTI_WRITERS_FINDINGS_FINDINGS_REST_H

#include "abi/kpt_tracer.h"
#include "writers/annotations/notes.h"
#include "writers/encode/text_builder.h"
#include "writers/gpu/gpu_launches.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_findings kpti_findings;

/* LAUNCHES are those of a walk of the same recording, or NULL. */
typedef struct kpti_findings_rest {
    const kpt_stats *stats;
    const kpti_gpu_log *gpu;
    kpti_gpu_launches *launches;
} kpti_findings_rest;

#ifdef __cplusplus
}
#endif
#endif
