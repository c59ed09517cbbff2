/* sample_attach.c: the threads that the sample traces: those that mark. thread_attach is called once for
 * each, and stop waits until these calls have returned. */
#include <time.h>

#include "tests/plugins/sample.h"

/* Returns the index of the calling thread, or the index for the next one. */
static uint32_t place_locked(const sample_tracer *t)
{
    uint32_t i = 0;
    while (i < t->attached_count && !pthread_equal(t->attached[i].thread, pthread_self()))
        i++;
    return i;
}

void sample_attach(sample_tracer *t)
{
    const kpt_host *host = &t->object.binding->host;
    uint32_t at;
    int is_new;
    sample_lock();
    at = place_locked(t);
    is_new = t->object.state == KPT_STATE_RUNNING && at == t->attached_count &&
             at < SAMPLE_ATTACHED && host->thread_attach;
    if (is_new) {
        t->attached[at].thread = pthread_self();
        t->attached[at].inside = 1;
        t->attached_count++;
    }
    sample_unlock();
    if (!is_new) return;
    (void)host->thread_attach(host->ctx, SAMPLE_FIRST_TID + at);
    sample_lock();
    t->attached[at].inside = 0;
    sample_unlock();
}

static int others_are_inside(const sample_tracer *t)
{
    int any = 0;
    sample_lock();
    for (uint32_t i = 0; i < t->attached_count; i++)
        any |= t->attached[i].inside && !pthread_equal(t->attached[i].thread, pthread_self());
    sample_unlock();
    return any;
}

void sample_attach_wait(const sample_tracer *t)
{
    static const struct timespec a_moment = {0, 1000000};
    while (!wrong("R805") && others_are_inside(t))
        (void)nanosleep(&a_moment, NULL);
}
