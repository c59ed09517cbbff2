#include "python_tracer/allocators/host_blocks.h"

#include "core/memory_log/sampled_blocks.h"
#include "python_tracer/capture/stack_capture.h"

/* Returns the key of a block among the samples. Other devices may use the same addresses as the processor.
 * The key of a block of the processor is its address. */
static uintptr_t key_of(const kpt_memory_report *r)
{
    const uint64_t device = r->device_type ? ((uint64_t)(uint32_t)r->device_type << 8) +
                                                 (uint64_t)(uint32_t)r->device_index + 1
                                           : 0;
    const uintptr_t key = (uintptr_t)(r->address ^ device << 47);
    return key > 1 ? key : ~key; /* 0 and 1 are no samples */
}

static void note(kpti_memory_inside in, const kpt_memory_report *r)
{
    const uintptr_t key = key_of(r);
    kpti_memory_pools *pools = kpti_memory_log_pools(in.log);
    uint32_t pool;
    if (r->action != KPT_REPORT_ALLOC) {
        if (!kpti_sample_ends(in, key, 0)) return;
        pool = kpti_memory_pool_of(pools, r);
        kpti_memory_append(in.log, in.thread, kpti_ticks(), r->address,
                           kpti_memory_what(KPTI_MEMORY_FREE, pool, 0), 0);
        return;
    }
    if (!kpti_sample_begins(in, r->size, 0)) return;
    pool = kpti_memory_pool_of(pools, r);
    if (!kpti_sample_lives(in, key, pool)) return;
    kpti_memory_append(in.log, in.thread, kpti_ticks(), r->address,
                       kpti_memory_what(KPTI_MEMORY_ALLOC, pool, r->size),
                       kpti_capture_pinned(kpti_memory_log_wish(in.log)->depth, 0));
}

void kpti_memory_report(kpti_memory_log *log, const kpt_memory_report *report)
{
    const kpti_memory_inside in = kpti_memory_enter();
    if (!in.log) return;
    if (in.log == log && report->address) note(in, report);
    kpti_memory_leave(in);
}
