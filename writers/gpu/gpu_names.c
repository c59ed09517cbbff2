#include "writers/gpu/gpu_names.h"

#include <stdio.h>

#include "abi/kpt_text.h"

/* By CUpti_ActivityMemcpyKind, CUpti_ActivityMemoryKind, CUpti_ActivitySynchronizationType, KPT_GPU_*. */
static const char *const copies[] = {"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                     "AtoD",    "DtoA", "DtoD", "HtoH", "PtoP"};
static const char *const memories[] = {"Unknown", "Pageable", "Pinned",        "Device",
                                       "Array",   "Managed",  "Device Static", "Managed Static"};
static const char *const syncs[] = {"Unknown", "Event Sync", "Stream Wait Event", "Stream Sync",
                                    "Context Sync"};
static const char *const categories[] = {"gpu",       "kernel",       "gpu_memcpy",  "gpu_memset",
                                         "cuda_sync", "cuda_runtime", "cuda_driver", "overhead",
                                         "nvtx",      "nvtx"};
static const char *const kinds[] = {"GPU activity", "kernel",      "Memcpy",   "Memset", "Sync",
                                    "CUDA call",    "CUDA driver", "Overhead", "range",  "mark"};

#define WORD(words, number) ((words)[(number) < sizeof(words) / sizeof *(words) ? (number) : 0])

kpt_str kpti_gpu_words_for(const kpt_gpu_event *e, char *buffer)
{
    if (e->kind == KPT_GPU_SYNC) return kpt_str_of(WORD(syncs, e->sync_kind));
    if (e->kind == KPT_GPU_MEMCPY) {
        (void)snprintf(buffer, KPTI_GPU_MAX_WORDS, "Memcpy %s (%s -> %s)",
                       WORD(copies, e->copy_kind), WORD(memories, e->source_kind),
                       WORD(memories, e->target_kind));
        return kpt_str_of(buffer);
    }
    if (e->kind == KPT_GPU_MEMSET) {
        (void)snprintf(buffer, KPTI_GPU_MAX_WORDS, "Memset (%s)", WORD(memories, e->target_kind));
        return kpt_str_of(buffer);
    }
    return kpt_str_of(WORD(kinds, e->kind));
}

const char *kpti_gpu_category(uint32_t kind)
{
    return WORD(categories, kind);
}

/* --- occupancy -------------------------------------------------------------------------------- */

static uint64_t round_up(uint64_t value, uint64_t step)
{
    return (value + step - 1) / step * step;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Returns how many blocks a multiprocessor runs at once, as in CUDA's cuda_occupancy.h, without the limits that
 * a device can be configured to. Since compute capability 8.0 the system reserves 1 kB of shared memory per
 * block. */
static uint64_t resident_blocks(const kpt_gpu_event *k, const kpt_gpu_device *d, uint64_t warps)
{
    enum { REGISTER_STEP = 256, WARP_STEP = 4, SHARED_STEP = 128, SHARED_OWN = 1024 };
    const uint64_t shared = (uint64_t)k->shared_static_bytes + k->shared_dynamic_bytes +
                            (d->compute_major >= 8 ? SHARED_OWN : 0);
    const uint64_t registers =
        round_up((uint64_t)k->registers * d->warp_size, REGISTER_STEP) * round_up(warps, WARP_STEP);
    const int small =
        d->compute_major == 7 ? d->compute_minor == 5 : d->compute_major == 8 && d->compute_minor;
    uint64_t max = small ? 16 : 32;
    if (d->compute_major == 8 && d->compute_minor == 9) max = 24;
    if (d->max_threads_per_multiprocessor)
        max = smaller(max, d->max_threads_per_multiprocessor / d->warp_size / warps);
    if (registers && d->registers_per_multiprocessor)
        max = smaller(max, d->registers_per_multiprocessor / registers);
    if (shared && d->shared_bytes_per_multiprocessor)
        max = smaller(max, d->shared_bytes_per_multiprocessor / round_up(shared, SHARED_STEP));
    return max;
}

kpti_gpu_fill kpti_gpu_fill_of(const kpt_gpu_event *k, const kpt_gpu_device *d)
{
    kpti_gpu_fill fill = {0, 0, 0};
    const double threads = (double)k->block[0] * k->block[1] * k->block[2];
    const double blocks = (double)k->grid[0] * k->grid[1] * k->grid[2];
    double resident;
    if (!d || !d->multiprocessors || !d->warp_size || threads < 1 || threads > 65536) return fill;
    fill.blocks = blocks / d->multiprocessors;
    fill.warps = fill.blocks * threads / d->warp_size;
    if (!d->max_threads_per_multiprocessor) return fill;
    resident = (double)resident_blocks(k, d, ((uint64_t)threads + d->warp_size - 1) / d->warp_size);
    if (fill.blocks < resident) resident = fill.blocks;
    fill.occupancy = (int)(100 * resident * threads / d->max_threads_per_multiprocessor + 0.5);
    if (fill.occupancy > 100) fill.occupancy = 100;
    return fill;
}
