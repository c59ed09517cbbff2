#include "python_tracer/state/fork_watch.h"

#include <pthread.h>

static const kpti_fork_handlers *handlers;

void kpti_fork_use(const kpti_fork_handlers *new_handlers)
{
    handlers = new_handlers;
}

static void watch(void)
{
    (void)pthread_atfork(handlers->before, handlers->in_parent, handlers->in_child);
}

void kpti_fork_watch(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch);
}
