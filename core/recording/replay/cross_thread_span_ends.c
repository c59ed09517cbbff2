#include "core/recording/replay/cross_thread_span_ends.h"

#include <string.h>

#include "core/base/assert.h"
#include "core/base/host_heap.h"

/* Makes space for one more end. Returns 0 if there is no memory. */
static int reserve(const kpti_env *env, kpti_cross_thread_ends *c)
{
    if (c->count == KPTI_MAX_CROSS_THREAD_ENDS) {
        c->count /= 2;
        memmove(c->ends, c->ends + c->count, c->count * sizeof *c->ends);
        return 1;
    }
    return kpti_host_array_reserve(env, &c->ends, &c->capacity, c->count + 1, sizeof *c->ends);
}

void kpti_cross_thread_ends_add(const kpti_env *env, kpti_cross_thread_ends *c, uint32_t number,
                                uint64_t ticks)
{
    if (!reserve(env, c)) return;
    /* The counters of two processors may differ slightly. */
    if (c->count && ticks < c->ends[c->count - 1].ticks) ticks = c->ends[c->count - 1].ticks;
    c->ends[c->count++] = (kpti_cross_thread_end){ticks, number, 0};
    kpti_assert(kpti_cross_thread_ends_are_valid(c));
}

int kpti_cross_thread_ends_copy(const kpti_env *env, const kpti_cross_thread_ends *from,
                                kpti_cross_thread_ends *out)
{
    memset(out, 0, sizeof *out);
    kpti_assert(kpti_cross_thread_ends_are_valid(from));
    if (!from->count) return 1;
    out->ends = kpti_alloc(env, from->count * sizeof *out->ends);
    if (!out->ends) return 0;
    memcpy(out->ends, from->ends, from->count * sizeof *out->ends);
    out->count = out->capacity = from->count;
    return 1;
}

void kpti_cross_thread_ends_free(const kpti_env *env, kpti_cross_thread_ends *c)
{
    kpti_free(env, c->ends, c->capacity * sizeof *c->ends);
    memset(c, 0, sizeof *c);
}
