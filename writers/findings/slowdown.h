/* slowdown.h: a bounded sample of one function's calls, by which one sees whether its calls became slower over the run.
 *
 * The sample has every n-th call; n doubles when the sample is full. So it has the whole run, whatever the number of
 * calls. */
#ifndef KPTI_WRITERS_FINDINGS_SLOWDOWN_H
#define KPTI_WRITERS_FINDINGS_SLOWDOWN_H

#include "core/base/allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kpti_sampled_call {
    int64_t start_ns;
    uint64_t ns;
} kpti_sampled_call;

/* Zeroed at first. Invariant: count <= capacity <= 128. */
typedef struct kpti_slowdown {
    kpti_sampled_call *calls;
    uint32_t count;
    uint32_t capacity;
    uint32_t every_log2; /* of this power of two, one call is in the sample */
    uint32_t seen;       /* calls modulo that power */
} kpti_slowdown;

/* What a sample says: medians of the first and the last third of the calls in the order of their starts. */
typedef struct kpti_slower {
    uint64_t first_ns;
    uint64_t last_ns;
    int64_t last_at_ns; /* begin of a call of the last third that took as long as its median */
} kpti_slower;

/* Returns KPT_OK or KPT_E_MEMORY. */
kpt_status kpti_slowdown_add_slow(kpti_slowdown *sample, const kpti_heap *heap, int64_t start_ns,
                                  uint64_t ns);
static inline kpt_status kpti_slowdown_add(kpti_slowdown *sample, const kpti_heap *heap,
                                           int64_t start_ns, uint64_t ns)
{
    if (++sample->seen >> sample->every_log2 == 0) return KPT_OK;
    return kpti_slowdown_add_slow(sample, heap, start_ns, ns);
}

/* Returns 1 and fills OUT if the calls became slower: see slowdown.c for the rule. Sorts the sample. */
int kpti_slowdown_judge(kpti_slowdown *sample, kpti_slower *out);

void kpti_slowdown_free(kpti_slowdown *sample, const kpti_heap *heap);

#ifdef __cplusplus
}
#endif
#endif
