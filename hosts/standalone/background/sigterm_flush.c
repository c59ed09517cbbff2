#include "hosts/standalone/background/sigterm_flush.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/assert.h"
#include "hosts/standalone/background/service_thread.h"

/* `lock` guards the list and is_dying. `control` is held around whole calls; the SIGTERM thread never acquires
 * it. */
static pthread_mutex_t control = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t removed = PTHREAD_COND_INITIALIZER;
static kpti_sigterm_flush *first;
static int is_dying;
static kpti_service_thread service;

/* The child of a fork has neither the thread nor a thread that held a lock. */
static void forget_parent(void)
{
    (void)pthread_mutex_init(&control, NULL);
    (void)pthread_mutex_init(&lock, NULL);
    (void)pthread_cond_init(&removed, NULL);
    first = NULL;
    is_dying = 0;
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, forget_parent);
}

static int anybody_rests(void)
{
    for (const kpti_sigterm_flush *f = first; f; f = f->next)
        if (f->paused) return 1;
    return 0;
}

/* Ends the process by the signal, also if the program has blocked the signal meanwhile. This thread then
 * receives it. */
static void die(void)
{
    sigset_t term;
    (void)sigemptyset(&term);
    (void)sigaddset(&term, SIGTERM);
    (void)signal(SIGTERM, SIG_DFL);
    (void)pthread_sigmask(SIG_UNBLOCK, &term, NULL);
    (void)kill(getpid(), SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &term, NULL);
}

/* Runs on the service thread. It does not release the lock, since nothing may be added or removed any more. The
 * timeout ensures that the process ends even if an entry waits in vain, for example for a GPU that hangs. */
static void take_leave(void *ignored)
{
    enum { MAX_SECONDS = 10 };
    struct timespec until;
    int error = 0;
    (void)ignored;
    kpti_assert(kpti_service_thread_is_current(&service));
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += MAX_SECONDS;
    pthread_mutex_lock(&lock);
    is_dying = 1;
    while (anybody_rests() && !error)
        error = pthread_cond_timedwait(&removed, &lock, &until);
    for (kpti_sigterm_flush *f = first; f; f = f->next)
        if (!f->paused) f->act(f->ctx, &until);
    die();
    if (getpid() != 1) return;
    /* The first process of a container (pid 1) survives the signal, as it would without us. */
    is_dying = 0;
    pthread_mutex_unlock(&lock);
}

static int start_service(void)
{
    memset(&service, 0, sizeof service);
    service.signal = SIGTERM;
    service.at_signal = take_leave;
    return kpti_service_thread_start(&service);
}

static int is_added(const kpti_sigterm_flush *f)
{
    const kpti_sigterm_flush *at = first;
    while (at && at != f)
        at = at->next;
    return at != NULL;
}

int kpti_sigterm_flush_add(kpti_sigterm_flush *f)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int error = 0;
    (void)pthread_once(&once, watch_forks);
    pthread_mutex_lock(&control);
    if (!is_added(f) && (first || kpti_service_thread_may_listen(SIGTERM))) {
        if (!first) error = start_service();
        pthread_mutex_lock(&lock);
        f->paused = 0;
        f->next = first;
        if (!error) first = f;
        pthread_mutex_unlock(&lock);
    }
    pthread_mutex_unlock(&control);
    return error;
}

void kpti_sigterm_flush_listen(void)
{
    pthread_mutex_lock(&control);
    pthread_mutex_lock(&lock); /* blocks for ever after SIGTERM: it is not caught again */
    if (first) kpti_service_thread_listen_again(&service);
    pthread_mutex_unlock(&lock);
    pthread_mutex_unlock(&control);
}

void kpti_sigterm_flush_pause(kpti_sigterm_flush *f)
{
    pthread_mutex_lock(&lock);
    f->paused = 1;
    pthread_mutex_unlock(&lock);
}

void kpti_sigterm_flush_remove(kpti_sigterm_flush *f)
{
    kpti_sigterm_flush **at = &first;
    int is_last;
    pthread_mutex_lock(&control);
    pthread_mutex_lock(&lock);
    while (*at && *at != f)
        at = &(*at)->next;
    is_last = *at && *at == f && at == &first && !f->next && !is_dying;
    if (*at) *at = f->next;
    (void)pthread_cond_broadcast(&removed);
    pthread_mutex_unlock(&lock);
    /* A SIGTERM arrived meanwhile and was not handled. It ends the process now. */
    if (is_last && kpti_service_thread_end(&service)) (void)kill(getpid(), SIGTERM);
    pthread_mutex_unlock(&control);
}
