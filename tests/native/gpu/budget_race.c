/* budget_race.c: two threads at one budget: one asks for more than there is, the other for what there is. */
#include "tests/native/gpu/budget_race.h"

#include <pthread.h>

#include "gpu_tracer/records/budget.h"

static atomic_int over;

static void *ask_too_much(void *budget)
{
    while (!over)
        (void)kpti_budget_take(budget, ((kpti_gpu_budget *)budget)->max + 1);
    return NULL;
}

unsigned budget_race(unsigned rounds)
{
    kpti_gpu_budget budget = {.max = 1000};
    unsigned refused = 0;
    pthread_t thread;
    over = 0;
    if (pthread_create(&thread, NULL, ask_too_much, &budget) != 0) return rounds;
    for (unsigned i = 0; i < rounds; i++)
        if (kpti_budget_take(&budget, budget.max))
            kpti_budget_give(&budget, budget.max);
        else
            refused++;
    over = 1;
    (void)pthread_join(thread, NULL);
    return refused;
}
