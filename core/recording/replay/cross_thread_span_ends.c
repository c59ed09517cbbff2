#include "core/recording/replay/cross_thread_span_ends.h"

#include <string.h>

#include "core/base/host_heap.h"

/* Makes space for one more end. Returns 0 if there is no memory. */
static int reserve(const kpti_env *env, kpti_cross_thread_ends *f)
{
    if (f->count == KPTI_MAX_CROSS_THREAD_ENDS) {
        f->count /= 2;
        memmove(f->ends, f->ends + f->count, f->count * sizeof *f->ends);
        return 1;
    }
    return kpti_host_array_reserve(env, &f->ends, &f->capacity, f->count + 1, sizeof *f->ends);
}

void kpti_cross_thread_ends_add(const kpti_env *env, kpti_cross_thread_ends *f, uint32_t number,
                                uint64_t ticks)
{
    if (!reserve(env, f)) return;
    /* The counters of two processors may differ slightly. */
    if (f->count && ticks < f->ends[f->count - 1].ticks) ticks = f->ends[f->count - 1].ticks;
    f->ends[f->count++] = (kpti_cross_thread_end){ticks, number, 0};
}

int kpti_cross_thread_ends_copy(const kpti_env *env, const kpti_cross_thread_ends *from,
                                kpti_cross_thread_ends *out)
{
    memset(out, 0, sizeof *out);
    if (!from->count) return 1;
    out->ends = kpti_alloc(env, from->count * sizeof *out->ends);
    if (!out->ends) return 0;
    memcpy(out->ends, from->ends, from->count * sizeof *out->ends);
    out->count = out->capacity = from->count;
    return 1;
}

void kpti_cross_thread_ends_free(const kpti_env *env, kpti_cross_thread_ends *f)
{
    kpti_free(env, f->ends, f->capacity * sizeof *f->ends);
    memset(f, 0, sizeof *f);
}
