#include "fork.h"

#include <pthread.h>

#include "function.h"
#include "session.h"

static void prepare(void)
{
    kpti_session_lock();
    kpti_functions_lock();
}

static void in_parent(void)
{
    kpti_functions_unlock();
    kpti_session_unlock();
}

static void in_child(void)
{
    kpti_session_forked_locked();
    kpti_functions_unlock();
    kpti_session_unlock();
}

void kpti_fork_watch(void)
{
    (void)pthread_atfork(prepare, in_parent, in_child);
}
