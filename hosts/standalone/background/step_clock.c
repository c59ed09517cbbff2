#include "hosts/standalone/background/step_clock.h"

#include <string.h>

static const uint64_t least_ns = UINT64_C(1000000);

static uint64_t median_of(const kpti_step_clock *c)
{
    uint64_t sorted[KPTI_STEPS_RECENT];
    const uint32_t count =
        c->steps < KPTI_STEPS_RECENT ? (uint32_t)c->steps : (uint32_t)KPTI_STEPS_RECENT;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;
        for (; at && sorted[at - 1] > c->recent[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = c->recent[i];
    }
    return count ? sorted[count / 2] : 0;
}

int kpti_step_clock_end(kpti_step_clock *c, kpti_step_source source, int64_t begin_ns,
                        int64_t end_ns, uint32_t percent, kpti_slow_step *slow)
{
    int is_slow;
    if (source < c->source) return 0;
    if (source > c->source) {
        memset(c, 0, sizeof *c);
        c->source = source;
    }
    slow->number = ++c->ended;
    if (!begin_ns) begin_ns = c->last_ns;
    c->last_ns = end_ns;
    if (!begin_ns || end_ns < begin_ns) return 0;
    slow->ns = (uint64_t)(end_ns - begin_ns);
    slow->median_ns = median_of(c);
    is_slow = c->steps >= KPTI_STEPS_NEEDED && slow->ns >= least_ns &&
              (double)slow->ns * 100 > (double)slow->median_ns * percent;
    c->recent[c->steps++ % KPTI_STEPS_RECENT] = slow->ns;
    return is_slow;
}
