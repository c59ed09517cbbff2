#include "hosts/standalone/background/slow_steps.h"

#include <string.h>

static const uint64_t least_ns = UINT64_C(1000000);

static uint64_t median_of(const kpti_slow_steps *c)
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

static int add(kpti_slow_steps *c, uint64_t ns, uint32_t percent, kpti_slow_step *slow)
{
    const int is_slow = c->steps >= KPTI_STEPS_NEEDED && ns >= least_ns &&
                        (double)ns * 100 > (double)median_of(c) * percent;
    *slow = (kpti_slow_step){c->ended, ns, median_of(c)};
    c->recent[c->steps++ % KPTI_STEPS_RECENT] = ns;
    return is_slow;
}

static void begin_anew(kpti_slow_steps *c, kpti_step_source source, uint64_t key)
{
    memset(c, 0, sizeof *c);
    c->source = source;
    c->key = key;
}

int kpti_slow_steps_span(kpti_slow_steps *c, uint64_t ns, uint32_t percent, kpti_slow_step *slow)
{
    if (c->source != KPTI_STEPS_OF_SPANS) begin_anew(c, KPTI_STEPS_OF_SPANS, 0);
    c->ended++;
    return add(c, ns, percent, slow);
}

int kpti_slow_steps_optimizer(kpti_slow_steps *c, uint64_t key, int64_t now_ns, uint32_t percent,
                              kpti_slow_step *slow)
{
    int64_t last_ns;
    if (c->source == KPTI_STEPS_OF_SPANS) return 0;
    if (c->source == KPTI_STEPS_OF_NOTHING) begin_anew(c, KPTI_STEPS_OF_OPTIMIZER, key);
    if (c->key != key && ++c->others < KPTI_STEPS_OF_OTHERS) return 0;
    if (c->key != key) begin_anew(c, KPTI_STEPS_OF_OPTIMIZER, key);
    last_ns = c->last_ns;
    c->last_ns = now_ns;
    c->others = 0;
    c->ended++;
    return last_ns && now_ns >= last_ns ? add(c, (uint64_t)(now_ns - last_ns), percent, slow) : 0;
}
