#include "plugin/python/loader_fork_lock.h"

#include <pthread.h>
#include <time.h>

/* Another's library whose constructor waits for Python, loaded at this moment, would hold up ours,
 * and a fork by the thread that has Python would wait for all three: it gives up after this long. */
enum { FORK_WAITS_S = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Of the calling thread: two may fork at once, and only one of them have waited in vain. */
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
