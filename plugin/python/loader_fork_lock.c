#include "plugin/python/loader_fork_lock.h"

#include <pthread.h>
#include <time.h>

/* A library of the host whose constructor waits for Python, and which is loaded at this moment, blocks our
 * load. A fork on the thread that holds the GIL would then wait for our load, and all three would deadlock. So
 * fork stops waiting after this time. */
enum { FORK_WAITS_S = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Whether the calling thread's fork acquired the lock. Thread-local, since two threads may fork at once and
 * only one of them may have timed out. */
static _Thread_local int fork_has_it;

static void before_fork(void)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += FORK_WAITS_S;
    if (pthread_mutex_timedlock(&lock, &until) == 0) fork_has_it = 1;
}

static void after_fork(void)
{
    if (!fork_has_it) return;
    fork_has_it = 0;
    pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
    fork_has_it = 0;
    (void)pthread_mutex_init(&lock, NULL);
}

static void watch_fork(void)
{
    (void)pthread_atfork(before_fork, after_fork, in_child);
}

void kpti_fork_wait_begin(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch_fork);
    pthread_mutex_lock(&lock);
}

void kpti_fork_wait_end(void)
{
    pthread_mutex_unlock(&lock);
}
